/**
 * Caching options: for one object, what keeping d of its chunks costs and saves (Agar, section IV-A), valued for a reader
 * that asks for the best k + delta chunks and uses the first k to arrive.
 */

import { solverError } from "../errors.ts";
import { expectedReadMs } from "./latency.ts";
import type { LatencyLaw } from "./latency.ts";

/** The best source outside this cache that holds a chunk: a region or a peer. */
export interface ChunkLatency extends LatencyLaw {
  readonly chunk: number;
}

export interface ObjectToCache {
  readonly k: number;
  readonly m: number;
  /** Size of one chunk in the unit of the cache's capacity; a positive integer. */
  readonly chunkBytes: number;
  /** One entry per chunk that can be had now: chunks of a region that is down are left out. */
  readonly sources: readonly ChunkLatency[];
  readonly cacheMs: number;
  /** Requests beyond k; 0 waits for exactly the best k. */
  readonly delta: number;
  /** Expected requests in the coming period. */
  readonly popularity: number;
  /** Functional chunks (new parity rows) leave all stored chunks useful beside them. Default: copies of stored chunks. */
  readonly functional?: boolean;
}

export interface CachingOption {
  /** Chunks kept: 1..k. */
  readonly d: number;
  /** Which ones, ascending: stored indices, or k+m.. for functional chunks. */
  readonly chunks: readonly number[];
  readonly weight: number;
  /** Popularity x milliseconds saved per read, >= 0. */
  readonly value: number;
  /** Expected duration of a read with these chunks cached. */
  readonly readMs: number;
}

/**
 * Returns the options d = 1..k. The chunks kept are the most distant ones that a read without cache would use, so the
 * furthest m are never fetched to fill the cache. With delta 0 and no deviations the read takes as long as its slowest
 * chunk: Agar's valuation. Departure from Agar: the option of weight d is valued with d chunks (its worked example values
 * the option of weight 2 with the latency after one step only). Throws CODE_INVALID for numbers out of range.
 */
export function cachingOptions(object: ObjectToCache): CachingOption[] {
  checkObject(object);
  const { k, m, chunkBytes, popularity } = object;
  const byDistance = object.sources.toSorted((a, b) => a.meanMs - b.meanMs || a.chunk - b.chunk);
  const uncachedMs = readMsWithCached(object, byDistance, 0);
  const options: CachingOption[] = [];
  for (let d = 1; d <= k; d++) {
    const used = byDistance.slice(0, k);
    const kept = object.functional
      ? Array.from({ length: d }, (_, row) => k + m + row)
      : used.slice(Math.max(0, used.length - d)).map((source) => source.chunk);
    // Fewer than k chunks can be had: copies cannot make up for it beyond what is there.
    if (kept.length < d) break;
    const readMs = readMsWithCached(object, byDistance, d);
    const saved = Number.isFinite(uncachedMs) ? Math.max(0, uncachedMs - readMs) : 0;
    options.push({
      d,
      chunks: kept.toSorted((a, b) => a - b),
      weight: d * chunkBytes,
      value: popularity * saved,
      readMs,
    });
  }
  return options;
}

/** Expected duration of a read while `d` chunks are cached; `byDistance` is sorted by mean latency. */
export function readMsWithCached(
  object: Pick<ObjectToCache, "k" | "cacheMs" | "delta" | "functional">,
  byDistance: readonly LatencyLaw[],
  d: number,
): number {
  const { k, cacheMs, delta } = object;
  const cached: LatencyLaw[] = Array.from({ length: d }, () => ({ meanMs: cacheMs }));
  if (d >= k) return cacheMs;
  // A copy takes the place of its stored chunk; a functional chunk leaves all of them to be asked for.
  const remote = object.functional ? byDistance : [...byDistance.slice(0, k - d), ...byDistance.slice(k)];
  return expectedReadMs([...cached, ...remote.slice(0, k - d + delta)], k);
}

function checkObject({ k, m, chunkBytes, sources, cacheMs, delta, popularity }: ObjectToCache): void {
  const integers = { k, m, chunkBytes, delta };
  const leasts = { k: 1, m: 0, chunkBytes: 1, delta: 0 };
  for (const name of Object.keys(leasts) as (keyof typeof leasts)[]) {
    if (Number.isSafeInteger(integers[name]) && integers[name] >= leasts[name]) continue;
    throw solverError("CODE_INVALID", `${name} must be an integer >= ${leasts[name]}, got ${integers[name]}`, integers);
  }
  const isMs = (ms: number): boolean => Number.isFinite(ms) && ms >= 0;
  if (!isMs(cacheMs) || !isMs(popularity)) {
    throw solverError("CODE_INVALID", `cacheMs ${cacheMs} and popularity ${popularity} must be finite and >= 0`, {
      cacheMs,
      popularity,
    });
  }
  for (const { chunk, meanMs, sdMs = 0 } of sources) {
    if (isMs(meanMs) && isMs(sdMs)) continue;
    throw solverError("CODE_INVALID", `chunk ${chunk}: latency ${meanMs} +- ${sdMs} ms must be finite and >= 0`, {
      chunk,
      meanMs,
      sdMs,
    });
  }
}
