/**
 * The default policy: needs no tuning. Popularity comes from the filter over several horizons (`popularity-filter.ts`). A
 * requested object that has become worth more than what it would replace is exchanged for that at once; now and then the
 * whole cache is solved exactly. Every change must gain more than its cache write costs.
 */

import { configureSome } from "../../policy/configure.ts";
import { keptObjects } from "../../policy/policy.ts";
import type { Policy, PolicyCache } from "../../policy/policy.ts";
import { PopularityFilter } from "./popularity-filter.ts";
import { packSnapshot } from "../../policy/snapshot.ts";
import type { SnapshotReader } from "../../policy/snapshot.ts";

/**
 * A write costs as much as so many milliseconds of one read, and must pay for itself while popularity is likely to stay
 * as it is.
 */
const WRITE_COST_MS = 200;
/** Requests between two solves of everything: so many at least, and one per object that was considered. */
const SOLVE_EVERY = 64;
/** Objects worth less per unit of weight than this share of the cheapest cached chunk are not considered at all. */
const CANDIDATE_SHARE = 0.25;
/** Requests between two prices, and between two looks at single cached objects. */
const PRICE_EVERY = 8;
const LOOK_EVERY = 2;

export function adaptive(cache: PolicyCache, state?: SnapshotReader): Policy {
  const filter = new PopularityFilter(cache.objects, undefined, state);
  const { estimate } = filter;
  /** `price`: the least that a unit of weight in the cache is worth. `turn`: which kept object is looked at next. */
  let [sinceSolve, untilSolve, price, turn] = (state?.float64(4) ?? [0, 0, 0, 0]) as [number, number, number, number];
  let kept = [...new Set([...(state?.objectList() ?? []), ...keptObjects(cache)])];
  const isKept = new Uint8Array(cache.objects);
  for (const object of kept) isKept[object] = 1;
  /** Per object: the most milliseconds that a unit of weight saves. */
  const densest = new Float64Array(cache.objects);
  /** Per kept object: the least milliseconds that a unit of weight given up costs. */
  const cheapest = new Float64Array(cache.objects);
  measure();

  function measure(): void {
    for (let o = 0; o < cache.objects; o++) densest[o] = densestOf(cache, o);
    for (const object of kept) cheapest[object] = cheapestOf(cache, object);
  }

  /** Solves exactly for everything that could belong into the cache. */
  function solve(): void {
    dropLost();
    for (const object of kept) filter.touch(object);
    const candidates = kept.slice();
    // While there is room, everything that saves anything is welcome.
    const least = cache.used > 0.9 * cache.capacity ? CANDIDATE_SHARE * price : 0;
    for (const object of filter.tracked) {
      if (cache.countOf(object) > 0 || estimate[object]! * densest[object]! <= least) continue;
      filter.touch(object);
      candidates.push(object);
    }
    apply(candidates, cache.capacity);
    sinceSolve = 0;
    untilSolve = Math.max(SOLVE_EVERY, candidates.length);
  }

  /** Solves for the object and for what it could replace: the least worthwhile of all that is cached. */
  function exchange(object: number): void {
    const own = weightOf(object);
    const needed = cache.kOf(object) * cache.chunkWeight[object]! - own - (cache.capacity - cache.used);
    const others = leastWorthwhile(object, needed);
    for (const other of others) filter.touch(other);
    apply(
      [object, ...others],
      cache.capacity - cache.used + own + others.reduce((sum, other) => sum + weightOf(other), 0),
    );
  }

  /** The cheapest kept objects besides `object` that weigh at least `needed` together, or all. */
  function leastWorthwhile(object: number, needed: number): number[] {
    const others: number[] = [];
    const worth: number[] = [];
    let weight = 0;
    if (needed <= 0) return others;
    for (const other of kept) {
      const own = estimate[other]! * cheapest[other]!;
      if (other === object || (weight >= needed && own >= worth.at(-1)!) || cache.countOf(other) === 0) continue;
      let at = others.length;
      while (at > 0 && worth[at - 1]! > own) at--;
      others.splice(at, 0, other);
      worth.splice(at, 0, own);
      weight += weightOf(other);
      for (let last = weightOf(others.at(-1)!); weight - last >= needed; last = weightOf(others.at(-1)!)) {
        others.pop();
        worth.pop();
        weight -= last;
      }
    }
    return others;
  }

  function weightOf(object: number): number {
    return cache.countOf(object) * cache.chunkWeight[object]!;
  }

  function apply(candidates: readonly number[], capacity: number): void {
    const { count } = configureSome(cache, estimate, candidates, capacity, WRITE_COST_MS / filter.lasting);
    let hasLost = false;
    for (const isGrowing of [false, true]) {
      for (const [i, object] of candidates.entries()) {
        const has = cache.countOf(object);
        if (count[i] === has || count[i]! > has !== isGrowing) continue;
        cache.keep(object, count[i]!);
        if (count[i]! > 0) cheapest[object] = cheapestOf(cache, object);
        if (count[i] === 0) hasLost = true;
        else if (!isKept[object]) add(object);
      }
    }
    if (hasLost) dropLost();
    price = lowestPrice();
  }

  function add(object: number): void {
    isKept[object] = 1;
    kept.push(object);
  }

  function dropLost(): void {
    for (const object of kept) isKept[object] = cache.countOf(object) > 0 ? 1 : 0;
    kept = kept.filter((object) => isKept[object]);
  }

  function lowestPrice(): number {
    let lowest = Infinity;
    for (const object of kept) lowest = Math.min(lowest, estimate[object]! * cheapest[object]!);
    return lowest;
  }

  /** Silence makes what is cached worth less: looks at it in turn. */
  function review(): void {
    if (sinceSolve % LOOK_EVERY === 0 && kept.length > 0) {
      turn = (turn + 1) % kept.length;
      filter.touch(kept[turn]!);
    }
    if (sinceSolve % PRICE_EVERY === 0) price = lowestPrice();
  }

  /** Whether more chunks of the object would be worth more than the cheapest ones in the cache, and a write. */
  function isUrgent(object: number): boolean {
    const has = cache.countOf(object);
    const saved = has === 0 ? 0 : cache.savedMs(object, has);
    const room = cache.capacity - cache.used;
    const writeCost = WRITE_COST_MS / filter.lasting;
    for (let d = has + 1; d <= cache.kOf(object); d++) {
      const weight = (d - has) * cache.chunkWeight[object]!;
      const replaced = Math.max(0, weight - room);
      const least = replaced > 0 ? price * replaced : 0;
      if (estimate[object]! * (cache.savedMs(object, d) - saved) > least + writeCost) return true;
    }
    return false;
  }

  return {
    onRequest: (object) => {
      filter.record(object);
      review();
      if (++sinceSolve >= untilSolve) solve();
      else if (isUrgent(object)) exchange(object);
    },
    onLatency: () => {
      measure();
      price = 0;
      solve();
      // As many chunks as before may be others now.
      for (const object of kept) cache.keep(object, cache.countOf(object));
    },
    forget: (object) => {
      filter.forget(object);
      densest[object] = densestOf(cache, object);
      dropLost();
    },
    snapshot: () =>
      packSnapshot("adaptive", cache.objects, [
        ...filter.lists(),
        Float64Array.of(sinceSolve, untilSolve, price, turn),
        kept,
      ]),
  };
}

function densestOf(cache: PolicyCache, object: number): number {
  let most = 0;
  for (let d = 1; d <= cache.kOf(object); d++) most = Math.max(most, cache.savedMs(object, d) / d);
  return most / cache.chunkWeight[object]!;
}

function cheapestOf(cache: PolicyCache, object: number): number {
  const has = cache.countOf(object);
  let least = Infinity;
  for (let d = 0; d < has; d++) {
    const lost = cache.savedMs(object, has) - (d === 0 ? 0 : cache.savedMs(object, d));
    least = Math.min(least, lost / (has - d));
  }
  return least / cache.chunkWeight[object]!;
}
