/**
 * The configuration in force: what this PoP caches and how it sees the regions. The cache manager publishes it as one KV
 * value each period; isolates keep it in memory.
 */
import type { Clock, Manifest } from "@agarose/core";
import { Broadcast } from "../platform/kv-snapshot.ts";

export interface Configuration {
  /** Grows with each publication. */
  readonly epoch: number;
  /** When it was published: milliseconds since 1970. */
  readonly at: number;
  /** By version: which chunks every stripe of it has in the chunk cache. */
  readonly cached: Readonly<Record<string, CachedObject>>;
  readonly regions: readonly RegionEstimate[];
}

export interface CachedObject {
  readonly key: string;
  /** Ascending chunk indices. */
  readonly chunks: readonly number[];
  readonly stripes: number;
  /** What it takes of the cache's capacity. */
  readonly bytes: number;
}

export interface RegionEstimate {
  readonly name: string;
  /** Time to the first byte, and its spread. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** How much longer each byte takes; 0 or left out while that is not known. */
  readonly msPerByte?: number;
  readonly down: boolean;
}

/** Expected time of a region to deliver `bytes` bytes. */
export function deliveryMs(
  { meanMs, msPerByte = 0 }: Pick<RegionEstimate, "meanMs" | "msPerByte">,
  bytes: number,
): number {
  return meanMs + msPerByte * bytes;
}

/** Length of one chunk in a stripe of the usual size. */
export function shardBytes({ bytes, stripeBytes, k }: Pick<Manifest, "bytes" | "stripeBytes" | "k">): number {
  return Math.ceil(Math.min(bytes, stripeBytes) / k);
}

export const CONFIGURATION_NAME = "configuration";
export const CONFIGURATION_EMPTY: Configuration = { epoch: 0, at: 0, cached: {}, regions: [] };

export class ConfigurationStore extends Broadcast<Configuration> {
  constructor(clock: Clock) {
    super(clock, { name: CONFIGURATION_NAME, empty: CONFIGURATION_EMPTY, parse: parseConfiguration });
  }
}

/** A stored configuration, or undefined when it is malformed: then nothing counts as cached. */
export function parseConfiguration(text: string): Configuration | undefined {
  try {
    const json = JSON.parse(text) as Configuration;
    const sound =
      Number.isSafeInteger(json.epoch) &&
      Number.isFinite(json.at) &&
      Array.isArray(json.regions) &&
      json.regions.every(({ meanMs, sdMs, msPerByte = 0 }) => [meanMs, sdMs, msPerByte].every(Number.isFinite)) &&
      Object.values(json.cached).every(isCachedObject);
    return sound ? json : undefined;
  } catch {
    return undefined;
  }
}

function isCachedObject(object: CachedObject): boolean {
  return (
    typeof object.key === "string" &&
    Number.isSafeInteger(object.stripes) &&
    Number.isSafeInteger(object.bytes) &&
    Array.isArray(object.chunks) &&
    object.chunks.every((chunk) => Number.isInteger(chunk) && chunk >= 0 && chunk < 256)
  );
}
