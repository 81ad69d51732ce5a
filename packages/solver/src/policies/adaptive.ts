/**
 * The default policy: needs no tuning. Popularity comes from the filter over several horizons (`popularity-filter.ts`); the
 * cache is solved exactly as soon as a requested object has become worth more than what it would replace, and
 * otherwise now and then; every change must gain more than its cache write costs.
 */

import { configureExactly } from "./configure.ts";
import { applyConfiguration, keptObjects } from "./policy.ts";
import type { Policy, PolicyCache } from "./policy.ts";
import { PopularityFilter } from "./popularity-filter.ts";
import { packSnapshot } from "./snapshot.ts";
import type { SnapshotReader } from "./snapshot.ts";

/** A write must pay for itself within so many requests … */
const HORIZON_REQUESTS = 4_000;
/** … where a write costs as much as so many milliseconds of one read. */
const WRITE_COST_MS = 200;
/** Requests between two solves when nothing urges. */
const SOLVE_EVERY = 64;
/** Objects worth less per unit of weight than this share of the cheapest cached chunk are not considered at all. */
const CANDIDATE_SHARE = 0.25;
/** Requests between two looks at what is cached: silence makes it worth less. */
const REVIEW_EVERY = 8;

export function adaptive(cache: PolicyCache, state?: SnapshotReader): Policy {
  const filter = new PopularityFilter(cache.objects, undefined, state);
  /** `price`: value per unit of weight of the least worthwhile chunk in the cache. */
  let [sinceSolve, price] = (state?.float64(2) ?? [0, 0]) as [number, number];
  let kept = keptObjects(cache);
  /** Per object: the most milliseconds that a unit of weight saves. */
  let densest = densestOfAll(cache);

  function solve(): void {
    sinceSolve = 0;
    for (const object of kept) filter.touch(object);
    const { count } = configureExactly(cache, filter.estimate, WRITE_COST_MS / HORIZON_REQUESTS, candidates());
    applyConfiguration(cache, count);
    kept = keptObjects(cache);
    price = lowestDensity();
  }

  function candidates(): number[] {
    // While there is room, everything that saves anything is welcome.
    const least = cache.used > 0.9 * cache.capacity ? CANDIDATE_SHARE * price : 0;
    const worthy: number[] = [];
    for (let o = 0; o < cache.objects; o++) {
      if (filter.estimate[o]! * densest[o]! <= least && cache.countOf(o) === 0) continue;
      filter.touch(o);
      worthy.push(o);
    }
    return worthy;
  }

  function lowestDensity(): number {
    let lowest = Infinity;
    for (const object of kept) {
      const d = cache.countOf(object);
      if (d === 0) continue;
      const density = (filter.estimate[object]! * cache.savedMs(object, d)) / (d * cache.chunkWeight[object]!);
      if (density < lowest) lowest = density;
    }
    return lowest;
  }

  function review(): void {
    for (const object of kept) filter.touch(object);
    price = lowestDensity();
  }

  /** Whether more chunks of the object would be worth more than the cheapest ones in the cache. */
  function isUrgent(object: number): boolean {
    const has = cache.countOf(object);
    const saved = has === 0 ? 0 : cache.savedMs(object, has);
    for (let d = has + 1; d <= cache.kOf(object); d++) {
      const weight = (d - has) * cache.chunkWeight[object]!;
      if (weight <= cache.capacity - cache.used) return true;
      if (filter.estimate[object]! * (cache.savedMs(object, d) - saved) > price * weight) return true;
    }
    return false;
  }

  return {
    onRequest: (object) => {
      filter.record(object);
      if (sinceSolve % REVIEW_EVERY === 0) review();
      if (++sinceSolve >= SOLVE_EVERY || isUrgent(object)) solve();
    },
    onLatency: () => {
      densest = densestOfAll(cache);
      price = 0;
      solve();
    },
    forget: (object) => {
      filter.forget(object);
      densest[object] = densestOf(cache, object);
    },
    snapshot: () => packSnapshot("adaptive", cache.objects, [...filter.lists(), Float64Array.of(sinceSolve, price)]),
  };
}

function densestOfAll(cache: PolicyCache): Float64Array {
  return Float64Array.from({ length: cache.objects }, (_, object) => densestOf(cache, object));
}

function densestOf(cache: PolicyCache, object: number): number {
  let most = 0;
  for (let d = 1; d <= cache.kOf(object); d++) most = Math.max(most, cache.savedMs(object, d) / d);
  return most / cache.chunkWeight[object]!;
}
