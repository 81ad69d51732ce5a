/**
 * The configuration in force: what this PoP caches and how it sees the regions. The cache manager publishes it as one
 * KV value each period; isolates keep it in memory.
 */
import type { RegionEstimate } from "@agarose/solver/planner";
import * as v from "valibot";
import type { KvSnapshotOptions } from "../runtime/kv-snapshot.ts";
import { parseJson } from "../runtime/variables.ts";
import { chunksSchema, stringsSchema } from "./held.ts";

const count = v.pipe(v.number(), v.safeInteger());
const finite = v.pipe(v.number(), v.finite());

/** Cached objects of equally many stripes with the same chunks: many share them, so the text has them once. */
const group = v.pipe(
  v.object({ chunks: chunksSchema, stripes: count, versions: stringsSchema, keys: stringsSchema }),
  v.check(({ versions, keys }) => versions.length === keys.length, "has as many keys as versions"),
);

const configuration = v.object({
  epoch: count,
  at: finite,
  cached: v.pipe(
    v.array(group),
    v.transform((groups) => {
      const objects = groups.flatMap(({ chunks, stripes, versions, keys }) =>
        versions.map((version, i): [string, CachedObject] => [version, { key: keys[i]!, chunks, stripes }]),
      );
      return new Map(objects);
    }),
  ),
  regions: v.array(
    v.object({
      name: v.string(),
      meanMs: finite,
      sdMs: finite,
      msPerByte: v.exactOptional(finite),
      down: v.optional(v.boolean(), false),
    }),
  ),
});

/** One object in the chunk cache. */
export interface CachedObject {
  readonly key: string;
  /** Ascending chunk indices, which every stripe has. */
  readonly chunks: readonly number[];
  readonly stripes: number;
}

/** The configuration in force. */
export interface Configuration {
  readonly epoch: number;
  /** When it was published: milliseconds since 1970. */
  readonly at: number;
  /** By version. */
  readonly cached: ReadonlyMap<string, CachedObject>;
  readonly regions: readonly RegionEstimate[];
}

/** The name of the KV value. */
export const CONFIGURATION_NAME = "configuration";
/** The configuration before the first one was published. */
export const CONFIGURATION_EMPTY: Configuration = { epoch: 0, at: 0, cached: new Map(), regions: [] };

/** The KV value of the configuration, for `KvSnapshot`. */
export const CONFIGURATION: KvSnapshotOptions<Configuration> = {
  name: CONFIGURATION_NAME,
  empty: CONFIGURATION_EMPTY,
  parse: parseConfiguration,
};

/** Returns a stored configuration, or undefined for a malformed one: then nothing counts as cached. */
export function parseConfiguration(text: string): Configuration | undefined {
  return parseJson(configuration, text);
}

/** Returns the text that `parseConfiguration` reads. */
export function formatConfiguration({ cached, ...rest }: Configuration): string {
  const groups = Map.groupBy(cached, ([, { chunks, stripes }]) => `${stripes}:${chunks.join()}`);
  const stored = [...groups.values()].map((objects): v.InferInput<typeof group> => {
    const { chunks, stripes } = objects[0]![1];
    return {
      chunks: [...chunks],
      stripes,
      versions: objects.map(([version]) => version),
      keys: objects.map(([, { key }]) => key),
    };
  });
  return JSON.stringify({ ...rest, cached: stored });
}
