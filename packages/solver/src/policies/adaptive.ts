/**
 * The default policy: needs no tuning. Popularity comes from the filter over several horizons (`popularity-filter.ts`); the
 * cache is solved exactly as soon as a requested object has become worth more than what it would replace, and
 * otherwise now and then; every change must gain more than its cache write costs.
 */

import { configureExactly } from "./configure.ts";
import { applyConfiguration } from "./policy.ts";
import type { Policy, PolicyCache } from "./policy.ts";
import { PopularityFilter } from "./popularity-filter.ts";

/** A write must pay for itself within so many requests … */
const HORIZON_REQUESTS = 4_000;
/** … where a write costs as much as so many milliseconds of one read. */
const WRITE_COST_MS = 200;
/** Requests between two solves when nothing urges. */
const SOLVE_EVERY = 64;

export function adaptive(cache: PolicyCache): Policy {
  const filter = new PopularityFilter(cache.objects);
  let sinceSolve = 0;
  /** Value per unit of weight of the least worthwhile chunk in the cache. */
  let price = 0;

  function solve(): void {
    sinceSolve = 0;
    const { count } = configureExactly(cache, filter.estimate, WRITE_COST_MS / HORIZON_REQUESTS);
    applyConfiguration(cache, count);
    price = lowestDensity();
  }

  function lowestDensity(): number {
    let lowest = Infinity;
    for (let o = 0; o < cache.objects; o++) {
      const d = cache.countOf(o);
      if (d === 0) continue;
      const density = (filter.estimate[o]! * cache.savedMs(o, d)) / (d * cache.chunkWeight[o]!);
      if (density < lowest) lowest = density;
    }
    return lowest;
  }

  /** Whether more chunks of the object would be worth more than the cheapest ones in the cache. */
  function isUrgent(object: number): boolean {
    const has = cache.countOf(object);
    const saved = has === 0 ? 0 : cache.savedMs(object, has);
    for (let d = has + 1; d <= cache.k; d++) {
      const weight = (d - has) * cache.chunkWeight[object]!;
      if (weight <= cache.capacity - cache.used) return true;
      if (filter.estimate[object]! * (cache.savedMs(object, d) - saved) > price * weight) return true;
    }
    return false;
  }

  return {
    onRequest: (object) => {
      filter.record(object);
      if (++sinceSolve >= SOLVE_EVERY || isUrgent(object)) solve();
    },
    onLatency: solve,
  };
}
