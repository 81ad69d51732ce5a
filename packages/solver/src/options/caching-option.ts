/**
 * Caching options: what keeping d chunks of one object costs and saves (Agar, ICDCS 2017, section IV-A). The reader
 * asks for the best k + delta chunks and uses the first k to arrive.
 */

import { SolverError } from "../errors.ts";
import { expectedReadMs } from "./latency.ts";
import type { LatencyLaw } from "./latency.ts";
import { costOf } from "./sources.ts";

/** Latency of one chunk from the best source outside this cache: a region or a peer. */
export interface ChunkLatency extends LatencyLaw {
  /** Index of the chunk, 0 to k+m-1. */
  readonly chunk: number;
  /** The price of asking it, as milliseconds of a reader's waiting. Default: 0. */
  readonly costMs?: number;
}

/** One object, as a reader at this cache sees it. */
export interface ObjectToCache {
  /** Data chunks, an integer >= 1: a read needs k chunks. */
  readonly k: number;
  /** Parity chunks, an integer >= 0. */
  readonly m: number;
  /** Size of one chunk in the unit of the cache's capacity; a positive integer. */
  readonly chunkBytes: number;
  /** One entry per chunk that is available now; chunks of a region that is down have none. */
  readonly sources: readonly ChunkLatency[];
  /** Milliseconds to read what the cache holds of the object, >= 0. */
  readonly cacheMs: number;
  /** Requests beyond k, an integer >= 0; 0 waits for exactly the best k. */
  readonly delta: number;
  /** Expected requests in the coming period, >= 0. */
  readonly popularity: number;
  /** Whether the cache keeps functional chunks (new parity rows) instead of copies of stored chunks. Default false. */
  readonly functional?: boolean;
}

/** One way to cache an object: `d` chunks of it. */
export interface CachingOption {
  /** Chunks kept: 1..k. */
  readonly d: number;
  /** Their indices, ascending: those of stored chunks, or k+m and above for functional chunks. */
  readonly chunks: readonly number[];
  /** Size of the kept chunks, in the unit of `chunkBytes`. */
  readonly weight: number;
  /** Popularity x milliseconds saved per read, >= 0. */
  readonly value: number;
  /** Expected milliseconds of a read with these chunks cached, and the price of its requests as milliseconds. */
  readonly readMs: number;
}

/**
 * Returns the options d = 1..k. An option keeps the most distant chunks that a read without cache would use, so no
 * cache fill fetches the furthest m. With delta 0 and no deviations a read takes as long as its slowest chunk, which is
 * Agar's valuation. Departure from Agar: the option of weight d is valued with d chunks. (The paper's worked example
 * values the option of weight 2 with the latency after one step only.) Throws CODE_INVALID for numbers out of range.
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
    // Fewer than k chunks are available, so there are no more chunks to copy.
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

/**
 * Expected milliseconds of a read while `d` chunks are cached, and the price of its requests. `byDistance` is sorted by
 * mean latency.
 */
function readMsWithCached(
  object: Pick<ObjectToCache, "k" | "cacheMs" | "delta" | "functional">,
  byDistance: readonly ChunkLatency[],
  d: number,
): number {
  const { k, cacheMs, delta } = object;
  const cached: LatencyLaw[] = Array.from({ length: d }, () => ({ meanMs: cacheMs }));
  if (d >= k) return cacheMs;
  // A copy replaces its stored chunk; beside a functional chunk a read can ask for any stored chunk.
  const remote = object.functional ? byDistance : [...byDistance.slice(0, k - d), ...byDistance.slice(k)];
  const asked = remote.slice(0, k - d + delta);
  return expectedReadMs([...cached, ...asked], k) + costOf(asked);
}

function checkObject({ k, m, chunkBytes, sources, cacheMs, delta, popularity }: ObjectToCache): void {
  const integers = { k, m, chunkBytes, delta };
  const leasts = { k: 1, m: 0, chunkBytes: 1, delta: 0 };
  for (const name of Object.keys(leasts) as (keyof typeof leasts)[]) {
    if (Number.isSafeInteger(integers[name]) && integers[name] >= leasts[name]) continue;
    throw new SolverError(
      "CODE_INVALID",
      `${name} must be an integer >= ${leasts[name]}, got ${integers[name]}`,
      integers,
    );
  }
  const isMs = (ms: number): boolean => Number.isFinite(ms) && ms >= 0;
  if (!isMs(cacheMs) || !isMs(popularity)) {
    throw new SolverError("CODE_INVALID", `cacheMs ${cacheMs} and popularity ${popularity} must be finite and >= 0`, {
      cacheMs,
      popularity,
    });
  }
  for (const { chunk, meanMs, sdMs = 0 } of sources) {
    if (isMs(meanMs) && isMs(sdMs)) continue;
    throw new SolverError("CODE_INVALID", `chunk ${chunk}: latency ${meanMs} +- ${sdMs} ms must be finite and >= 0`, {
      chunk,
      meanMs,
      sdMs,
    });
  }
}
