/**
 * The best contents of a cache for given popularities: it turns caching options into a knapsack, and the solution back.
 */

import { solveKnapsack } from "../knapsack/index.ts";
import type { KnapsackSolution } from "../knapsack/index.ts";
import type { PolicyCache } from "./policy.ts";

/** Contents of a cache, and the proof of their value. */
export interface CacheConfiguration {
  /** Chunks to keep of each object, or of each candidate in the order given. */
  readonly count: Uint8Array;
  readonly solution: KnapsackSolution;
}

/**
 * Chooses d for every object so that the sum of popularity x milliseconds saved is largest. `popularity`: one number >=
 * 0 per object.
 */
export function configureExactly(cache: PolicyCache, popularity: ArrayLike<number>): CacheConfiguration {
  const wanted: number[] = [];
  for (let o = 0; o < cache.objects; o++) if (popularity[o]! > 0) wanted.push(o);
  const { count, solution } = configureSome(cache, popularity, wanted, cache.capacity);
  const all = new Uint8Array(cache.objects);
  for (const [i, o] of wanted.entries()) all[o] = count[i]!;
  return { count: all, solution };
}

/**
 * Does the same for some objects that share `capacity`. Every option except the present one counts what the object's
 * write costs less, so a change must gain more than that. Default: writes are free.
 */
export function configureSome(
  cache: PolicyCache,
  popularity: ArrayLike<number>,
  candidates: readonly number[],
  capacity: number,
  writeCost: (object: number) => number = () => 0,
): CacheConfiguration {
  const start = [0];
  const chosen: number[] = [];
  const weights: number[] = [];
  const values: number[] = [];
  const counts: number[] = [];
  for (const [i, o] of candidates.entries()) {
    const weight = cache.chunkWeight[o]!;
    const k = Math.min(cache.kOf(o), Math.floor(capacity / weight));
    const has = cache.countOf(o);
    const change = writeCost(o);
    for (let d = 1; d <= k; d++) {
      const value = popularity[o]! * cache.savedMs(o, d) - (d === has ? 0 : change);
      if (value < 0) continue;
      weights.push(d * weight);
      values.push(value);
      counts.push(d);
    }
    if (weights.length === start.at(-1)) continue;
    chosen.push(i);
    start.push(weights.length);
  }
  const solution = solveKnapsack({
    capacity,
    start: Uint32Array.from(start),
    weights: Float64Array.from(weights),
    values: Float64Array.from(values),
  });
  const count = new Uint8Array(candidates.length);
  for (const [at, i] of chosen.entries()) {
    const choice = solution.choice[at]!;
    if (choice >= 0) count[i] = counts[start[at]! + choice]!;
  }
  return { count, solution };
}
