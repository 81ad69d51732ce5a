/** The best contents of a cache for given popularities: caching options into the exact knapsack, and its answer back. */

import { solveKnapsack } from "../knapsack.ts";
import type { KnapsackSolution } from "../knapsack.ts";
import type { PolicyCache } from "./policy.ts";

export interface Configuration {
  /** Chunks to keep of each object. */
  readonly count: Uint8Array;
  readonly solution: KnapsackSolution;
}

/**
 * Chooses d for every object so that the sum of popularity x milliseconds saved is largest. `stayBonus` is added to the
 * option an object has already: what a change must gain before it is worth its cache write. `candidates` limits the
 * choice to some objects; default: all of them.
 */
export function configureExactly(
  cache: PolicyCache,
  popularity: ArrayLike<number>,
  stayBonus = 0,
  candidates?: readonly number[],
): Configuration {
  const { objects, chunkWeight } = cache;
  const chosen: number[] = [];
  const start: number[] = [0];
  const weights: number[] = [];
  const values: number[] = [];
  const considered = candidates?.length ?? objects;
  for (let at = 0; at < considered; at++) {
    const o = candidates ? candidates[at]! : at;
    const has = stayBonus > 0 ? cache.countOf(o) : 0;
    if (!(popularity[o]! > 0) && has === 0) continue;
    if (chunkWeight[o]! > cache.capacity) continue;
    chosen.push(o);
    for (let d = 1; d <= cache.kOf(o); d++) {
      weights.push(d * chunkWeight[o]!);
      values.push(popularity[o]! * cache.savedMs(o, d) + (d === has ? stayBonus : 0));
    }
    start.push(weights.length);
  }
  const solution = solveKnapsack({
    capacity: cache.capacity,
    start: Uint32Array.from(start),
    weights: Float64Array.from(weights),
    values: Float64Array.from(values),
  });
  const count = new Uint8Array(objects);
  for (const [i, o] of chosen.entries()) count[o] = solution.choice[i]! + 1;
  return { count, solution };
}
