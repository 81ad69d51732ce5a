/**
 * The best contents of a cache for given popularities: it turns caching options into a knapsack, and the solution back.
 */
import { solveKnapsack, type KnapsackSolution } from "../knapsack/index.ts";
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
  let most = 0;
  for (const o of candidates) most += cache.kOf(o);
  const start = new Uint32Array(candidates.length + 1);
  const chosen = new Uint32Array(candidates.length);
  const weights = new Float64Array(most);
  const values = new Float64Array(most);
  const counts = new Uint8Array(most);
  let objects = 0;
  let options = 0;
  for (let i = 0; i < candidates.length; i++) {
    const o = candidates[i]!;
    const weight = cache.chunkWeight[o]!;
    const k = Math.min(cache.kOf(o), Math.floor(capacity / weight));
    const has = cache.countOf(o);
    const change = writeCost(o);
    for (let d = 1; d <= k; d++) {
      const value = popularity[o]! * cache.savedMs(o, d) - (d === has ? 0 : change);
      if (value < 0) continue;
      weights[options] = d * weight;
      values[options] = value;
      counts[options++] = d;
    }
    if (options === start[objects]) continue;
    chosen[objects++] = i;
    start[objects] = options;
  }
  const solution = solveKnapsack({
    capacity,
    start: start.subarray(0, objects + 1),
    weights: weights.subarray(0, options),
    values: values.subarray(0, options),
  });
  const count = new Uint8Array(candidates.length);
  for (let at = 0; at < objects; at++) {
    const choice = solution.choice[at]!;
    if (choice >= 0) count[chosen[at]!] = counts[start[at]! + choice]!;
  }
  return { count, solution };
}
