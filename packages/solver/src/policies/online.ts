/**
 * The online scheme of Liu et al. (Algorithm 3): on each request the cached objects of least value per chunk, together
 * with the requested one, are divided anew. Popularity comes from the discounting rate estimator.
 *
 * Departures: the small problem of lines 11-12 is solved by our exact knapsack, which finds the same optimum as
 * Algorithms 1-2 (`liu-partitions.ts` is tested against it); room is counted in weight, so that objects may differ in size.
 */

import { solveKnapsack } from "../knapsack.ts";
import type { Policy, PolicyCache } from "./policy.ts";

export function online(cache: PolicyCache, decay: number, everySeconds: number): Policy {
  const { k, chunkWeight } = cache;
  const counters = new Float64Array(cache.objects);
  const cached = new Set<number>();
  let steps = 0;
  const valueOf = (object: number, d: number): number => counters[object]! * cache.savedMs(object, d);
  const densityOf = (object: number): number => {
    const d = cache.countOf(object);
    return valueOf(object, d) / (d * chunkWeight[object]!);
  };

  function decayUntil(seconds: number): void {
    const due = Math.floor(seconds / everySeconds);
    if (due === steps) return;
    for (let o = 0; o < counters.length; o++) counters[o]! *= decay ** (due - steps);
    steps = due;
  }

  /** Lines 6-9: the requested object and the cheapest cached ones, until the whole object would fit. */
  function chooseCandidates(object: number): number[] {
    const candidates = [object];
    let room = cache.capacity - cache.used + cache.countOf(object) * chunkWeight[object]!;
    const others = [...cached].filter((other) => other !== object);
    const densities = others.map(densityOf);
    while (room < k * chunkWeight[object]! && candidates.length <= others.length) {
      const at = densities.indexOf(Math.min(...densities));
      densities[at] = Infinity;
      candidates.push(others[at]!);
      room += cache.countOf(others[at]!) * chunkWeight[others[at]!]!;
    }
    return candidates;
  }

  function divide(candidates: number[]): void {
    let capacity = cache.capacity - cache.used;
    for (const object of candidates) capacity += cache.countOf(object) * chunkWeight[object]!;
    const options = candidates.flatMap((object) =>
      Array.from({ length: k }, (_, d) => [(d + 1) * chunkWeight[object]!, valueOf(object, d + 1)] as const),
    );
    const { choice } = solveKnapsack({
      capacity,
      start: Uint32Array.from({ length: candidates.length + 1 }, (_, i) => i * k),
      weights: Float64Array.from(options, ([weight]) => weight),
      values: Float64Array.from(options, ([, value]) => value),
    });
    for (const object of candidates) cache.keep(object, 0);
    for (const [i, object] of candidates.entries()) {
      cache.keep(object, choice[i]! + 1);
      if (choice[i]! >= 0) cached.add(object);
      else cached.delete(object);
    }
  }

  return {
    onRequest: (object, seconds) => {
      decayUntil(seconds);
      counters[object]! += 1;
      if (cache.countOf(object) >= k || chunkWeight[object]! > cache.capacity) return;
      if (cache.used + (k - cache.countOf(object)) * chunkWeight[object]! <= cache.capacity) {
        cache.keep(object, k);
        cached.add(object);
      } else divide(chooseCandidates(object));
    },
  };
}
