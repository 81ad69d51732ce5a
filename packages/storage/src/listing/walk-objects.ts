/** Does something to the keys that a caller gives, or to all that the buckets list, and reports what came of each. */
import { AgaroseError } from "@agarose/core";
import type { RegionParts } from "../commit/write-context.ts";
import { givenKeys, KeyListing } from "./keys.ts";
import type { KeyGroup, Kind } from "./key-groups.ts";
import { mapOrdered } from "./adaptive-pool.ts";
import { WalkCursor, type Cursor } from "./walk-cursor.ts";

/** Where to walk. */
export interface WalkOptions {
  /** Default: all keys that begin with the prefix. */
  readonly keys?: readonly string[];
  readonly prefix?: string | undefined;
  readonly cursor?: string;
  /** Objects at a time, in place of those of the walk. */
  readonly jobs?: number;
  /** Receives a warning of regions that cannot be listed. Default: nobody does. */
  readonly onWarning?: (line: string) => void;
}

/** The action for each key. `R` is the result of one key, `T` the sum of all, `I` an entry of a listing. */
export interface Walk<R, T, I extends { readonly key: string } = KeyGroup> {
  /** Says in the cursor file what this walk does. */
  readonly name: string;
  readonly options: WalkOptions;
  /** Another listing than that of the regions: what comes after a key, in the order in which it comes. */
  readonly items?: (after: string | undefined) => AsyncIterable<I>;
  /** The listed kinds that `act` needs besides manifests. */
  readonly kinds?: readonly Kind[];
  readonly objectsAtATime: number;
  /** Undefined for a key of which nothing is to be said. `item` is what was listed, if the key was not given. */
  readonly act: (key: string, item: I | undefined) => Promise<R | undefined>;
  /** Adds a result to what was found so far. */
  readonly add: (totals: T, result: R) => T;
  /** Called with each result, in the order of the keys. The walk waits for it, so that results do not pile up. */
  readonly onResult?: (result: R) => Promise<void>;
  /**
   * Does what the results so far have left to do, at the end all of it. Undefined while some of it is left: then the
   * cursor waits.
   */
  readonly settle?: (totals: T, isEnd: boolean) => Promise<T | undefined>;
  /** Where the walk is, in place of the cursor file. */
  readonly cursor?: Cursor<T> | undefined;
  /** The last key of the walk. Default: there is none. */
  readonly until?: string | undefined;
  /** Whether to stop after this result: what it left to do is done, and the cursor passes it. Default: never. */
  readonly isEnough?: (totals: T) => boolean;
}

/**
 * Walks, and returns what all results come to, those of an earlier run that was killed or stopped included.
 *
 * @throws NO_QUORUM at its end, or where it has enough, when so few regions could be listed that keys may be missing.
 *   The cursor then stays where more regions answered.
 */
export async function walkObjects<R, T, I extends { readonly key: string } = KeyGroup>(
  walk: Walk<R, T, I>,
  none: T,
  context: RegionParts,
): Promise<T> {
  const { options, objectsAtATime, kinds, act, add, onResult, settle = (totals) => Promise.resolve(totals) } = walk;
  const { isEnough = () => false } = walk;
  const { onWarning = () => {} } = options;
  const keys = givenKeys(options.keys ?? [], options.prefix);
  const { shard, inventories } = context;
  if (keys.length > 0 && shard) throw new AgaroseError("USAGE", "give either keys or a shard");
  if (keys.length > 0 && inventories?.size) throw new AgaroseError("USAGE", "give either keys or an inventory");
  const prefix = options.prefix ?? "";
  const isGiven = keys.length > 0;
  const isListed = !isGiven && walk.items === undefined;
  const cursor: Cursor<T> =
    walk.cursor ??
    (await WalkCursor.open(
      isGiven ? undefined : options.cursor,
      `${walk.name} ${prefix}${shard ? ` ${shard.index}/${shard.count}` : ""}`.trim(),
      context.stores,
      none,
    ));
  const listing = new KeyListing(prefix, context, { after: cursor.after, until: walk.until, ...(kinds && { kinds }) });
  let totals = cursor.totals ?? none;
  // The regions list groups, and `items` what the walk takes in their place.
  const listed = walk.items?.(cursor.after) ?? (listing.groups() as unknown as AsyncIterable<I>);
  const results = mapOrdered<{ readonly key: string }, { key: string; result: R | undefined }>(
    isGiven ? keys.map((key) => ({ key })) : listed,
    options.jobs ?? objectsAtATime,
    async (item) => ({ key: item.key, result: await act(item.key, isGiven ? undefined : (item as I)) }),
  );
  for await (const { key, result } of results) {
    if (result !== undefined) {
      await onResult?.(result);
      totals = add(totals, result);
    }
    const isLast = isEnough(totals);
    const settled = await settle(totals, isLast);
    if (settled === undefined) continue;
    totals = settled;
    // Behind a region that fails, keys may be missing. A later run has to look there again.
    if (!isListed || listing.complete) await cursor.pass(key, totals);
    if (!isLast) continue;
    if (isListed) listing.end(onWarning);
    return totals;
  }
  totals = (await settle(totals, true)) ?? totals;
  if (isListed) listing.end(onWarning);
  await cursor.end(totals);
  return totals;
}
