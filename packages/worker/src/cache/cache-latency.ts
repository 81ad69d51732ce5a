/**
 * How long the chunk cache takes, as this PoP measures it: what the knapsack counts with. Two tiers differ. KV answers
 * the first read of a value in a data center, from a central store, and the Cache API and memory answer those of the
 * next hour. Pure.
 */
import { observeLatency, type LatencyEstimate } from "@agarose/core/sources";
import { WINSOR_FACTOR } from "../regions/probe-health.ts";
import { EDGE_LATENCY } from "../regions/region-latency.ts";

/** Reads of the chunk cache: how many, and their milliseconds together. */
interface CacheReads {
  readonly reads: number;
  readonly ms: number;
}

/** The reads of a period by tier: `first` had to ask KV. */
export interface CacheTimes {
  readonly first: CacheReads;
  readonly again: CacheReads;
}

/** The estimates of both tiers; undefined before the first measurement, when both count as near. */
export interface CacheLatency {
  readonly first?: LatencyEstimate | undefined;
  readonly again?: LatencyEstimate | undefined;
}

const NO_READS: CacheReads = { reads: 0, ms: 0 };
/** No reads yet. */
export const NO_TIMES: CacheTimes = { first: NO_READS, again: NO_READS };

/** Returns the sums of both. */
export function addTimes(a: CacheTimes, b: CacheTimes): CacheTimes {
  const sum = (one: CacheReads, other: CacheReads): CacheReads => {
    return { reads: one.reads + other.reads, ms: one.ms + other.ms };
  };
  return { first: sum(a.first, b.first), again: sum(a.again, b.again) };
}

/**
 * Returns the estimates after a period with these reads: their mean counts as one measurement, of at most twice the
 * estimate. A few reads at a bad moment must not empty the cache, and what is slow for a quarter of an hour shall.
 */
export function mergeCacheTimes(before: CacheLatency, { first, again }: CacheTimes): CacheLatency {
  const after = (estimate: LatencyEstimate | undefined, { reads, ms }: CacheReads): LatencyEstimate | undefined => {
    if (reads === 0) return estimate;
    const { meanMs } = estimate ?? EDGE_LATENCY;
    const most = WINSOR_FACTOR * Math.max(meanMs, EDGE_LATENCY.meanMs);
    return observeLatency(estimate ?? EDGE_LATENCY, Math.min(ms / reads, most));
  };
  return { first: after(before.first, first), again: after(before.again, again) };
}
