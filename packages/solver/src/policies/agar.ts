/**
 * Agar's cache manager (Fig. 4 and 5): dynamic programming over cache sizes that improves configurations by adding the
 * next option and by relaxing an old one to make room.
 *
 * Read literally, three points are open and taken thus: a configuration holds at most one option of an object, so adding
 * a larger one replaces the smaller; a relaxed old option keeps as many chunks as the remaining weight allows; sizes are
 * visited from large to small, so that an option is not added twice in one pass. `earlyStop` ends the pass once as many
 * objects in a row as fit the cache changed nothing. Sizes are counted in chunks; where those differ in size, or are bytes and
 * more than 250 fit, in 100 units per cache, because the work grows with objects x sizes^2.
 */

import { PeriodPopularity } from "../policy/period-popularity.ts";
import { applyConfiguration } from "../policy/policy.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { packSnapshot } from "../policy/snapshot.ts";
import type { SnapshotReader } from "../policy/snapshot.ts";

export interface AgarSettings {
  readonly alpha: number;
  readonly earlyStop: boolean;
}

export function agar(cache: PolicyCache, { alpha, earlyStop }: AgarSettings, state?: SnapshotReader): Policy {
  const popularity = new PeriodPopularity(cache.objects, alpha, state);
  return {
    onRequest: (object) => popularity.record(object),
    onPeriod: () => applyConfiguration(cache, populate(cache, popularity.endPeriod(), earlyStop)),
    forget: (object) => popularity.forget(object),
    snapshot: () => packSnapshot("agar", cache.objects, popularity.lists()),
  };
}

/** A configuration of one size: its options in the order they came, and their sum. Objects are places in `keys`. */
interface Sized {
  value: number;
  objects: number[];
  counts: number[];
}

const UNITS = 100;
const CHUNKS_MAX = 250;

/** Fig. 4: returns the chunks to keep of each object. */
export function populate(cache: PolicyCache, popularity: Float64Array, earlyStop: boolean): Uint8Array {
  const { chunkWeight } = cache;
  const wholeValue = (object: number): number => popularity[object]! * cache.savedMs(object, cache.kOf(object));
  const keys = Array.from(popularity.keys())
    .filter((object) => popularity[object]! > 0)
    .toSorted((a, b) => wholeValue(b) - wholeValue(a) || a - b);
  const first = chunkWeight[keys[0] ?? 0]!;
  const isUniform = keys.every((object) => chunkWeight[object] === first);
  const isCounted = isUniform && (first === 1 || cache.capacity <= CHUNKS_MAX * first);
  const unit = isCounted ? first : Math.max(1, cache.capacity / UNITS);
  const size = Math.floor(cache.capacity / unit);
  /** Per object its options' weights and values, by chunks; the innermost loops look nothing else up. */
  const weights = keys.map((object) => optionsOf(cache, object, (d) => Math.ceil((d * chunkWeight[object]!) / unit)));
  const values = keys.map((object) => optionsOf(cache, object, (d) => popularity[object]! * cache.savedMs(object, d)));
  const best: (Sized | undefined)[] = [{ value: 0, objects: [], counts: [] }];
  let unchanged = 0;
  for (let object = 0; object < keys.length; object++) {
    let changed = false;
    const k = weights[object]!.length - 1;
    for (let d = 1; d <= k; d++) {
      const weight = weights[object]![d]!;
      const value = values[object]![d]!;
      if (value <= 0 || weight > size) continue;
      for (const config of best) if (config && relax(config, object, d, weight, value)) changed = true;
      for (let from = size; from >= 0; from--) {
        const config = best[from];
        if (config && add(config, from, object, d, weight, value)) changed = true;
      }
    }
    unchanged = changed ? 0 : unchanged + 1;
    if (earlyStop && unchanged >= Math.ceil(size / weights[object]![k]!)) break;
  }

  /** Fig. 4, lines 15-20: the option comes on top, or in place of a smaller one of the same object. */
  function add(config: Sized, from: number, object: number, d: number, weight: number, value: number): boolean {
    // Options of the object at hand come last: nothing was added since.
    const last = config.objects.length - 1;
    const has = config.objects[last] === object ? config.counts[last]! : 0;
    if (has >= d) return false;
    const to = from + weight - (has === 0 ? 0 : weights[object]![has]!);
    const sum = config.value + value - (has === 0 ? 0 : values[object]![has]!);
    if (to > size || (best[to]?.value ?? -1) >= sum) return false;
    const kept = has === 0 ? last + 1 : last;
    const objects = config.objects.slice(0, kept);
    const counts = config.counts.slice(0, kept);
    objects.push(object);
    counts.push(d);
    best[to] = { value: sum, objects, counts };
    return true;
  }

  /** Fig. 5: gives part or all of an old option's room to the new one. */
  function relax(config: Sized, object: number, d: number, weight: number, value: number): boolean {
    const { objects, counts } = config;
    if (objects.at(-1) === object) return false;
    let bestValue = config.value;
    let bestAt = -1;
    let bestCount = 0;
    for (let at = 0; at < objects.length; at++) {
      const oldValues = values[objects[at]!]!;
      const oldWeights = weights[objects[at]!]!;
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
      objects.splice(bestAt, 1);
      counts.splice(bestAt, 1);
    }
    objects.push(object);
    counts.push(d);
    return true;
  }

  // The full size may never have been reached exactly: then the most valuable smaller configuration is the answer.
  let answer = best[0]!;
  for (const config of best) if (config && config.value > answer.value) answer = config;
  const count = new Uint8Array(cache.objects);
  for (const [at, key] of answer.objects.entries()) count[keys[key]!] = answer.counts[at]!;
  return count;
}

/** A number for each d = 0..k of an object's chunks; none are worth nothing. */
function optionsOf(cache: PolicyCache, object: number, of: (d: number) => number): Float64Array {
  return Float64Array.from({ length: cache.kOf(object) + 1 }, (_, d) => (d === 0 ? 0 : of(d)));
}
