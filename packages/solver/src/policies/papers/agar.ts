/**
 * Agar's cache manager (ICDCS 2017, Fig. 4 and 5): dynamic programming over cache sizes that improves configurations by
 * adding the next option and by relaxing an old one to make room.
 *
 * The paper leaves three points open. A configuration here holds at most one option of an object, so adding a larger
 * one replaces the smaller. A relaxed option keeps as many chunks as the remaining weight allows. Sizes are visited
 * from large to small, so that one pass adds an option once. `earlyStop` ends the pass once as many objects in a row
 * changed nothing as fit in the cache. Sizes are counted in chunks. Where chunks differ in size, or are bytes and more
 * than 250 fit, a cache has 100 units, because the work grows with objects x sizes^2.
 */
import { PeriodPopularity } from "../../policy/period-popularity.ts";
import { applyConfiguration, type Policy, type PolicyCache } from "../../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../../policy/snapshot.ts";

/**
 * `alpha`: weight of the newest period in the average, above 0 and at most 1. `earlyStop`: see the head of this file.
 */
interface AgarSettings {
  readonly alpha: number;
  readonly earlyStop: boolean;
}

/** Creates the policy for `cache`, as new or from a snapshot. */
export function agar(cache: PolicyCache, { alpha, earlyStop }: AgarSettings, state?: SnapshotReader): Policy {
  const popularity = new PeriodPopularity(cache.objects, alpha, state);
  return {
    onRequest: (object) => popularity.record(object),
    onPeriod: () => applyConfiguration(cache, populate(cache, popularity.endPeriod(), earlyStop)),
    forget: (object) => popularity.forget(object),
    snapshot: () => packSnapshot("agar", cache.objects, popularity.lists()),
  };
}

const UNITS = 100;
const COUNTED_CHUNKS_MAX = 250;

/**
 * Fig. 4: returns the number of chunks to keep of each object, 0..k. `popularity` has one entry per object, in any
 * unit, >= 0.
 */
export function populate(cache: PolicyCache, popularity: Float64Array, earlyStop: boolean): Uint8Array {
  const wholeValue = (object: number): number => popularity[object]! * cache.savedMs(object, cache.kOf(object));
  const objects = Array.from(popularity.keys())
    .filter((object) => popularity[object]! > 0)
    .toSorted((a, b) => wholeValue(b) - wholeValue(a) || a - b);
  const unit = unitOf(cache, objects);
  const size = Math.floor(cache.capacity / unit);
  const table = new Configurations(
    size,
    objects.map((object) => optionsOf(cache, object, (d) => Math.ceil((d * cache.chunkWeight[object]!) / unit))),
    objects.map((object) => optionsOf(cache, object, (d) => popularity[object]! * cache.savedMs(object, d))),
  );
  let unchanged = 0;
  for (let place = 0; place < objects.length; place++) {
    unchanged = table.improve(place) ? 0 : unchanged + 1;
    if (earlyStop && unchanged >= Math.ceil(size / table.wholeWeight(place))) break;
  }
  const count = new Uint8Array(cache.objects);
  const best = table.best();
  for (const [at, place] of best.places.entries()) count[objects[place]!] = best.counts[at]!;
  return count;
}

/**
 * The unit in which sizes are counted: one chunk where chunks are alike and few fit, a share of the cache otherwise.
 */
function unitOf({ chunkWeight, capacity }: PolicyCache, objects: readonly number[]): number {
  const first = chunkWeight[objects[0] ?? 0]!;
  const isUniform = objects.every((object) => chunkWeight[object] === first);
  const isCounted = isUniform && (first === 1 || capacity <= COUNTED_CHUNKS_MAX * first);
  return isCounted ? first : Math.max(1, capacity / UNITS);
}

/** A number for each d = 0..k of an object's chunks; no chunks are worth nothing. */
function optionsOf(cache: PolicyCache, object: number, of: (d: number) => number): Float64Array {
  return Float64Array.from({ length: cache.kOf(object) + 1 }, (_, d) => (d === 0 ? 0 : of(d)));
}

/** A configuration of one size: its options in the order they came, and the sum of their values. */
interface CacheConfiguration {
  value: number;
  /** Places of the objects in the order of the pass. */
  places: number[];
  counts: number[];
}

/** The best configuration found so far of every size. Objects are known by their place in the order of the pass. */
class Configurations {
  readonly #size: number;
  /** Per place the weights and the values of its options, by number of chunks. */
  readonly #weights: readonly Float64Array[];
  readonly #values: readonly Float64Array[];
  readonly #bySize: (CacheConfiguration | undefined)[] = [{ value: 0, places: [], counts: [] }];

  constructor(size: number, weights: readonly Float64Array[], values: readonly Float64Array[]) {
    this.#size = size;
    this.#weights = weights;
    this.#values = values;
  }

  /** Offers all options of one object to all configurations; returns whether any changed. */
  improve(place: number): boolean {
    const bySize = this.#bySize;
    const weights = this.#weights[place]!;
    const values = this.#values[place]!;
    let changed = false;
    for (let d = 1; d < weights.length; d++) {
      const weight = weights[d]!;
      const value = values[d]!;
      if (value <= 0 || weight > this.#size) continue;
      for (const config of bySize) if (config && this.#relax(config, place, d, weight, value)) changed = true;
      for (let from = this.#size; from >= 0; from--) {
        const config = bySize[from];
        if (config && this.#add(config, from, place, d, weight, value)) changed = true;
      }
    }
    return changed;
  }

  /** Weight of all k chunks of the object. */
  wholeWeight(place: number): number {
    return this.#weights[place]!.at(-1)!;
  }

  /** The most valuable configuration of any size: the full size may never have been reached exactly. */
  best(): CacheConfiguration {
    let best = this.#bySize[0]!;
    for (const config of this.#bySize) if (config && config.value > best.value) best = config;
    return best;
  }

  /** Fig. 4, lines 15-20: the option comes on top, or in place of a smaller one of the same object. */
  #add(config: CacheConfiguration, from: number, place: number, d: number, weight: number, value: number): boolean {
    // Options of the object at hand come last: nothing was added since.
    const last = config.places.length - 1;
    const has = config.places[last] === place ? config.counts[last]! : 0;
    if (has >= d) return false;
    const to = from + weight - (has === 0 ? 0 : this.#weights[place]![has]!);
    const sum = config.value + value - (has === 0 ? 0 : this.#values[place]![has]!);
    if (to > this.#size || (this.#bySize[to]?.value ?? -1) >= sum) return false;
    const kept = has === 0 ? last + 1 : last;
    const places = config.places.slice(0, kept);
    const counts = config.counts.slice(0, kept);
    places.push(place);
    counts.push(d);
    this.#bySize[to] = { value: sum, places, counts };
    return true;
  }

  /** Fig. 5: gives part or all of an old option's room to the new one. */
  #relax(config: CacheConfiguration, place: number, d: number, weight: number, value: number): boolean {
    const { places, counts } = config;
    const allValues = this.#values;
    const allWeights = this.#weights;
    if (places.at(-1) === place) return false;
    let bestValue = config.value;
    let bestAt = -1;
    let bestCount = 0;
    for (let at = 0; at < places.length; at++) {
      const oldValues = allValues[places[at]!]!;
      const oldWeights = allWeights[places[at]!]!;
      let count = counts[at]!;
      const left = oldWeights[count]! - weight;
      if (left < 0) continue;
      const without = config.value - oldValues[count]!;
      count--;
      while (count > 0 && oldWeights[count]! > left) count--;
      const after = without + oldValues[count]! + value;
      if (after <= bestValue) continue;
      bestValue = after;
      bestAt = at;
      bestCount = count;
    }
    if (bestAt < 0) return false;
    config.value = bestValue;
    if (bestCount > 0) counts[bestAt] = bestCount;
    else {
      places.splice(bestAt, 1);
      counts.splice(bestAt, 1);
    }
    places.push(place);
    counts.push(d);
    return true;
  }
}
