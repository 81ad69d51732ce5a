/**
 * The configuration in force: what this PoP caches and how it sees the regions. The cache manager publishes it as one
 * KV value each period; isolates keep it in memory.
 */
import type { Clock } from "@agarose/core";
import type { RegionEstimate } from "@agarose/solver/planner";
import * as v from "valibot";
import { KvSnapshot } from "../runtime/kv-snapshot.ts";
import { parseJson } from "../runtime/variables.ts";

const count = v.pipe(v.number(), v.safeInteger());
const finite = v.pipe(v.number(), v.finite());
const chunkIndex = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(255));

const cachedObject = v.object({
  key: v.string(),
  /** Ascending chunk indices. */
  chunks: v.array(chunkIndex),
  stripes: count,
  /** Its part of the cache's capacity. */
  bytes: count,
});

const configuration = v.object({
  /** Grows with each publication. */
  epoch: count,
  /** When it was published: milliseconds since 1970. */
  at: finite,
  /** By version: the chunks that every stripe of it has in the chunk cache. */
  cached: v.record(v.string(), cachedObject),
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
export type CachedObject = Immutable<v.InferOutput<typeof cachedObject>>;
/** The configuration in force. */
export interface Configuration extends Omit<Immutable<v.InferOutput<typeof configuration>>, "regions"> {
  readonly regions: readonly RegionEstimate[];
}

type Immutable<T> = { readonly [K in keyof T]: T[K] extends object ? Immutable<T[K]> : T[K] };

/** The name of the KV value. */
export const CONFIGURATION_NAME = "configuration";
/** The configuration before the first one was published. */
export const CONFIGURATION_EMPTY: Configuration = { epoch: 0, at: 0, cached: {}, regions: [] };

/** The configuration in the memory of one isolate. */
export class ConfigurationSnapshot extends KvSnapshot<Configuration> {
  constructor(clock: Clock) {
    super(clock, { name: CONFIGURATION_NAME, empty: CONFIGURATION_EMPTY, parse: parseConfiguration });
  }
}

/** Returns a stored configuration, or undefined for a malformed one: then nothing counts as cached. */
export function parseConfiguration(text: string): Configuration | undefined {
  return parseJson(configuration, text);
}
