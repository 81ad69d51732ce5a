/**
 * The keys that the buckets hold: the manifests of all regions that answer, merged.
 */
import { AgaroseError, encodeKey, keyOfManifestName, MANIFEST_PREFIX, parseKey, toAgaroseError } from "@agarose/core";
import type { Config } from "../config.ts";
import type { CommandContext } from "../context.ts";
import { logLine } from "../output.ts";
import type { Store } from "../store/store.ts";

/** The keys of all regions that answered. */
export interface KeyListing {
  /** Key -> when its newest manifest was written, in order of the keys. */
  readonly keys: ReadonlyMap<string, number>;
  readonly regionsFailed: readonly { region: string; problem: string }[];
  /** Whether the regions that answered hold every key: true when at most m failed. */
  readonly complete: boolean;
}

/** Warns on stderr about the regions that did not answer, and when keys may be missing from the list. */
export function warnOfFailures({ regionsFailed, complete }: KeyListing): void {
  for (const { region, problem } of regionsFailed) logLine(`warning: ${region} did not answer: ${problem}`);
  if (!complete) logLine("warning: too few regions answered: keys may be missing from this list");
}

/** The keys given, or all that begin with `prefix`. Throws USAGE, KEY_INVALID or KEY_TOO_LONG. */
export async function selectKeys(
  keys: readonly string[],
  prefix: string | undefined,
  { config, stores, signal }: CommandContext,
): Promise<readonly string[]> {
  if (keys.length > 0 && prefix !== undefined) throw new AgaroseError("USAGE", "give either keys or --prefix");
  if (keys.length > 0) return keys.map(parseKey);
  const listing = await listKeys(prefix ?? "", config, stores, signal);
  warnOfFailures(listing);
  return [...listing.keys.keys()];
}

/** Lists the keys that begin with `prefix`. Throws the error of the first region when none answers. */
export async function listKeys(
  prefix: string,
  config: Config,
  stores: readonly Store[],
  signal: AbortSignal,
): Promise<KeyListing> {
  const keys = new Map<string, number>();
  const failures: { region: string; error: AgaroseError }[] = [];
  await Promise.all(
    stores.map(async (store) => {
      try {
        for await (const { name, modifiedMs } of store.list(`${MANIFEST_PREFIX}${encodeKey(prefix)}`, signal)) {
          const key = keyOfManifestName(name);
          if (key !== undefined) keys.set(key, Math.max(keys.get(key) ?? 0, modifiedMs));
        }
      } catch (error) {
        failures.push({ region: store.region.name, error: toAgaroseError(error, "SOURCE_FAILED") });
      }
    }),
  );
  if (failures.length === stores.length) throw failures[0]!.error;
  return {
    keys: new Map([...keys].toSorted(([a], [b]) => (a < b ? -1 : 1))),
    regionsFailed: failures.map(({ region, error }) => ({ region, problem: error.message })),
    // A put leaves its manifest in at least m + 1 regions.
    complete: failures.length <= Math.min(config.code.m, stores.length - 1),
  };
}
