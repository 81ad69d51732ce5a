/**
 * The online scheme of Liu et al. (Algorithm 3): on each request the cached objects of least value per chunk, together
 * with the requested one, are divided anew. Popularity comes from the discounting rate estimator.
 *
 * Departures: the small problem of lines 11-12 is solved by our exact knapsack, which finds the same optimum as
 * Algorithms 1-2 (`liu-partitions.ts` is tested against it); room is counted in weight, so that objects may differ in size.
 */

import { solveKnapsack } from "../knapsack/index.ts";
import { keptObjects } from "../policy/policy.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { packSnapshot } from "../policy/snapshot.ts";
import type { SnapshotReader } from "../policy/snapshot.ts";

export function online(cache: PolicyCache, decay: number, everySeconds: number, state?: SnapshotReader): Policy {
  const { chunkWeight } = cache;
  const counters = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
  const cached = new Set<number>([...(state?.objectList() ?? []), ...keptObjects(cache)]);
  let steps = state?.float64(1)[0] ?? 0;
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
    const whole = cache.kOf(object) * chunkWeight[object]!;
    const candidates = [object];
    let room = cache.capacity - cache.used + cache.countOf(object) * chunkWeight[object]!;
    const others = [...cached].filter((other) => other !== object && cache.countOf(other) > 0);
    const densities = others.map(densityOf);
    while (room < whole && candidates.length <= others.length) {
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
    const start = [0];
    const weights: number[] = [];
    const values: number[] = [];
    for (const object of candidates) {
      for (let d = 1; d <= cache.kOf(object); d++) {
        weights.push(d * chunkWeight[object]!);
        values.push(valueOf(object, d));
      }
      start.push(weights.length);
    }
    const { choice } = solveKnapsack({
      capacity,
      start: Uint32Array.from(start),
      weights: Float64Array.from(weights),
      values: Float64Array.from(values),
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
      const k = cache.kOf(object);
      if (cache.countOf(object) >= k || chunkWeight[object]! > cache.capacity) return;
      if (cache.used + (k - cache.countOf(object)) * chunkWeight[object]! <= cache.capacity) {
        cache.keep(object, k);
        cached.add(object);
      } else divide(chooseCandidates(object));
    },
    forget: (object) => {
      counters[object] = 0;
      cached.delete(object);
    },
    snapshot: () => packSnapshot("online", cache.objects, [counters, [...cached], Float64Array.of(steps)]),
  };
}
