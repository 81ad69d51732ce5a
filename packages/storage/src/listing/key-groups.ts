/**
 * The objects of the buckets for one key at a time, in order of the keys and in constant memory.
 *
 * Listings come in order of the names, and `!` ends every key in them, so a merge of all listings meets each key once.
 * A region that lists in another order counts as one that cannot be listed: what it has would seem to be missing.
 */
import { AgaroseError, systemClock, toAgaroseError, type Clock } from "@agarose/core";
import { CHUNK_PREFIX, keyName, keyNamePrefix, keyOfName, MANIFEST_PREFIX } from "@agarose/core/format";
import { CLAIM_PREFIX, GARBAGE_PREFIX, HISTORY_PREFIX, REPAIR_PREFIX } from "../commit/names.ts";
import { SilenceLimit } from "../objects/silence.ts";
import type { ListedObject, Store } from "../buckets/store.ts";
import { NAMES_MAX, tooManyNames } from "./bounded-names.ts";
import { isInShard, type Shard } from "./shard.ts";

/** An object of a listing, and where it is. */
export interface RegionObject extends ListedObject {
  readonly store: Store;
  /** The suffix after the name of the key. */
  readonly suffix: string;
}

/** Everything of one key. */
export interface KeyGroup {
  readonly key: string;
  readonly chunks: readonly RegionObject[];
  readonly manifests: readonly RegionObject[];
  readonly claims: readonly RegionObject[];
  readonly marks: readonly RegionObject[];
  readonly repairs: readonly RegionObject[];
  readonly history: readonly RegionObject[];
}

/** When the newest manifest of a key was written, by the clock of its region: ISO 8601, UTC. */
export function modifiedOf({ manifests }: Pick<KeyGroup, "manifests">): string {
  return new Date(Math.max(...manifests.map(({ modifiedMs }) => modifiedMs))).toISOString();
}

const PREFIXES = {
  // Chunks first: a put that ends meanwhile has its manifest among those listed afterwards.
  chunks: CHUNK_PREFIX,
  manifests: MANIFEST_PREFIX,
  claims: CLAIM_PREFIX,
  marks: GARBAGE_PREFIX,
  repairs: REPAIR_PREFIX,
  history: HISTORY_PREFIX,
} as const;

/** The name of a key, as `keyName` makes it. */
const OWN_GROUP = /^[\x21-\x7e]+$/;

/** The kinds of objects that buckets hold for a key. */
export type Kind = keyof typeof PREFIXES;

/** The kinds that are listed by default. */
export const KINDS_DEFAULT: readonly Kind[] = ["chunks", "manifests", "claims", "marks"];

interface ListingOptions {
  /** The kinds to list. The others are empty. Default: all but the repair queue and the history. */
  readonly kinds?: readonly Kind[];
  readonly after?: string;
  /** A text behind which names begin, in place of `after`: a place between keys. */
  readonly from?: string;
  /** The last key to list. Default: there is none. */
  readonly until?: string | undefined;
  /** Leaves out the keys of other shards. Default: there are none. */
  readonly shard?: Shard | undefined;
  /** A source to read in place of listing a region. An error of one ends the listing. Default: there are none. */
  readonly inventories?: ReadonlyMap<Store, Pick<Store, "list">> | undefined;
  /** Timers of deadlines. Default: the system's. */
  readonly clock?: Clock;
  /** Receives a region that cannot be listed, and why; the rest is listed without it. Default: it ends the listing. */
  readonly onFailure?: (store: Store, error: AgaroseError) => void;
}

interface Cursor {
  readonly kind: Kind;
  readonly store: Store;
  readonly objects: AsyncIterator<ListedObject>;
  /** Undefined for an inventory, which comes after all of it was read. */
  readonly silence: SilenceLimit | undefined;
  /** The greatest group so far. */
  last: string;
  /** Names of that group so far. */
  names: number;
  /** The next object and the key that it belongs to; undefined at the end. */
  next: { readonly group: string; readonly object: RegionObject } | undefined;
}

/**
 * The keys that begin with `prefix`. Rejects when a region cannot be listed, unless `onFailure` takes it. Names of
 * other programs are omitted.
 */
export async function* keyGroups(
  stores: readonly Store[],
  prefix: string,
  outer: AbortSignal,
  {
    kinds = KINDS_DEFAULT,
    after,
    from,
    until,
    shard,
    inventories,
    clock = systemClock,
    onFailure,
  }: ListingOptions = {},
): AsyncGenerator<KeyGroup> {
  const left = new AbortController();
  const signal = AbortSignal.any([outer, left.signal]);
  const passed = after === undefined ? from : keyName(after);
  const last = until === undefined ? undefined : keyName(until);
  const cursors = kinds.flatMap((kind) =>
    stores.map((store): Cursor => {
      const inventory = inventories?.get(store);
      const silence = inventory ? undefined : new SilenceLimit(clock, signal);
      const start = passed === undefined ? undefined : `${PREFIXES[kind]}${passed}`;
      const names = (inventory ?? store).list(
        `${PREFIXES[kind]}${keyNamePrefix(prefix)}`,
        silence?.signal ?? signal,
        start,
      );
      return { kind, store, silence, objects: names[Symbol.asyncIterator](), last: "", names: 0, next: undefined };
    }),
  );
  const failed = new Set<Store>();
  const step = async (cursor: Cursor): Promise<void> => {
    try {
      await advance(cursor, shard);
      // Not every store begins where it is asked to.
      while (cursor.next && cursor.next.group <= (passed ?? "")) await advance(cursor, shard);
      if (last !== undefined && cursor.next && cursor.next.group > last) cursor.next = undefined;
    } catch (error) {
      signal.throwIfAborted();
      if (!onFailure || inventories?.has(cursor.store)) throw error;
      if (!failed.has(cursor.store)) onFailure(cursor.store, toAgaroseError(error, "SOURCE_FAILED"));
      failed.add(cursor.store);
    }
  };
  try {
    await Promise.all(cursors.map(step));
    for (;;) {
      const groups = cursors.flatMap(({ next }) => next?.group ?? []);
      const group = groups.reduce<string | undefined>((a, b) => (a === undefined || b < a ? b : a), undefined);
      if (group === undefined) return;
      const found = await Promise.all(cursors.map((cursor) => take(cursor, group, step)));
      const key = keyOfName(group);
      if (key === undefined) continue;
      const of = (kind: Kind): RegionObject[] =>
        found.flatMap((objects, index) => (cursors[index]!.kind === kind ? objects : []));
      const own = { chunks: of("chunks"), manifests: of("manifests"), claims: of("claims") };
      yield { key, ...own, marks: of("marks"), repairs: of("repairs"), history: of("history") };
    }
  } finally {
    // An inventory is put in order by its own process.
    left.abort();
  }
}

async function take(cursor: Cursor, group: string, step: (cursor: Cursor) => Promise<void>): Promise<RegionObject[]> {
  const objects: RegionObject[] = [];
  while (cursor.next?.group === group) {
    objects.push(cursor.next.object);
    await step(cursor);
  }
  return objects;
}

async function advance(cursor: Cursor, shard: Shard | undefined): Promise<void> {
  for (;;) {
    cursor.next = undefined;
    const next = cursor.objects.next();
    const { done, value } = await (cursor.silence?.limit(next) ?? next);
    if (done) return;
    const rest = value.name.slice(PREFIXES[cursor.kind].length);
    const at = rest.indexOf("!");
    if (at <= 0) continue;
    const object = { ...value, store: cursor.store, suffix: rest.slice(at + 1) };
    const group = rest.slice(0, at + 1);
    // Names of other programs may not be ASCII: then the order of UTF-16 is not that of UTF-8.
    if (!OWN_GROUP.test(group)) continue;
    if (group < cursor.last) throw outOfOrder(cursor, value.name);
    cursor.names = group === cursor.last ? cursor.names + 1 : 1;
    if (cursor.names > NAMES_MAX) throw tooManyNames(cursor.store, `${PREFIXES[cursor.kind]}${group}`, cursor.names);
    cursor.last = group;
    if (shard && !isInShard(group, shard)) continue;
    cursor.next = { group, object };
    return;
  }
}

function outOfOrder({ store, last }: Cursor, name: string): AgaroseError {
  const region = store.region.name;
  const message =
    `region ${region} lists ${name} behind names of ${JSON.stringify(last)}, and not in order: Agarose needs a store ` +
    "that lists in order of the names, as S3 does";
  return new AgaroseError("SOURCE_FAILED", message, { region, name });
}
