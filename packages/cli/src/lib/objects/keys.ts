/**
 * The keys that the buckets hold: the manifests of all regions that answer, merged.
 */
import {
  AgaroseError,
  encodeKey,
  isTombstone,
  keyOfManifestName,
  MANIFEST_PREFIX,
  parseKey,
  toAgaroseError,
} from "@agarose/core";
import { mapPool } from "../pool.ts";
import type { CommandContext } from "../context.ts";
import { logLine } from "../output.ts";
import { majorityOf } from "./commit/write-context.ts";
import { checkManifests } from "./verify-object.ts";

/** A tombstone is shorter than this and its key; a manifest is longer, but for some of format 1. */
const TOMBSTONE_BYTES_MAX = 400;
const TOMBSTONES_AT_A_TIME = 16;

/** The keys of all regions that answered. */
export interface KeyListing {
  /** Key -> when its newest manifest was written, in order of the keys. */
  readonly keys: ReadonlyMap<string, number>;
  readonly regionsFailed: readonly { region: string; problem: string }[];
  /** Whether the regions that answered hold every key: true when less than a majority failed. */
  readonly complete: boolean;
}

/** Warns on stderr about the regions that did not answer, and when keys may be missing from the list. */
export function warnOfFailures({ regionsFailed, complete }: KeyListing): void {
  for (const { region, problem } of regionsFailed) logLine(`warning: ${region} did not answer: ${problem}`);
  if (!complete) logLine("warning: too few regions answered: keys may be missing from this list");
}

/**
 * The keys given, or all that begin with `prefix`; those of removed objects on request. Throws USAGE, KEY_INVALID or
 * KEY_TOO_LONG.
 */
export async function selectKeys(
  keys: readonly string[],
  prefix: string | undefined,
  context: CommandContext,
  { removed = false }: { readonly removed?: boolean } = {},
): Promise<readonly string[]> {
  if (keys.length > 0 && prefix !== undefined) throw new AgaroseError("USAGE", "give either keys or --prefix");
  if (keys.length > 0) return keys.map(parseKey);
  const listing = await listKeys(prefix ?? "", context, removed);
  warnOfFailures(listing);
  return [...listing.keys.keys()];
}

/**
 * Lists the keys that begin with `prefix`, without those of removed objects unless `removed` asks for them. Throws the
 * error of the first region when none answers.
 */
export async function listKeys(
  prefix: string,
  context: Pick<CommandContext, "stores" | "signal" | "trust">,
  removed = false,
): Promise<KeyListing> {
  const { stores, signal } = context;
  const suspects = new Set<string>();
  const keys = new Map<string, number>();
  const failures: { region: string; error: AgaroseError }[] = [];
  await Promise.all(
    stores.map(async (store) => {
      try {
        for await (const { name, bytes, modifiedMs } of store.list(`${MANIFEST_PREFIX}${encodeKey(prefix)}`, signal)) {
          const key = keyOfManifestName(name);
          if (key === undefined) continue;
          keys.set(key, Math.max(keys.get(key) ?? 0, modifiedMs));
          if (bytes <= TOMBSTONE_BYTES_MAX + 2 * name.length) suspects.add(key);
        }
      } catch (error) {
        failures.push({ region: store.region.name, error: toAgaroseError(error, "SOURCE_FAILED") });
      }
    }),
  );
  if (failures.length === stores.length) throw failures[0]!.error;
  if (!removed) {
    const gone = await mapPool([...suspects], TOMBSTONES_AT_A_TIME, (key) => isRemoved(key, context));
    for (const [index, key] of [...suspects].entries()) if (gone[index]) keys.delete(key);
  }
  return {
    keys: new Map([...keys].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    regionsFailed: failures.map(({ region, error }) => ({ region, problem: error.message })),
    // A put leaves its manifest in a majority of the regions.
    complete: failures.length < majorityOf(stores),
  };
}

/** Whether the newest of all regions is a tombstone. */
async function isRemoved(key: string, context: Parameters<typeof checkManifests>[1]): Promise<boolean> {
  const { newest } = await checkManifests(key, context);
  return newest !== undefined && isTombstone(newest);
}
