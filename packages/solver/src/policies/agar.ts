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

import { PeriodPopularity } from "./period-popularity.ts";
import { applyConfiguration } from "./policy.ts";
import type { Policy, PolicyCache } from "./policy.ts";
import { packSnapshot } from "./snapshot.ts";
import type { SnapshotReader } from "./snapshot.ts";

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

/** A configuration of one size: its options in the order they came, and their sum. */
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
  const weightOf = (object: number, d: number): number => Math.ceil((d * chunkWeight[object]!) / unit);
  const valueOf = (object: number, d: number): number => popularity[object]! * cache.savedMs(object, d);
  const keys = Array.from(popularity.keys())
    .filter((object) => popularity[object]! > 0)
    .toSorted((a, b) => valueOf(b, cache.kOf(b)) - valueOf(a, cache.kOf(a)) || a - b);
  const first = chunkWeight[keys[0] ?? 0]!;
  const isUniform = keys.every((object) => chunkWeight[object] === first);
  const isCounted = isUniform && (first === 1 || cache.capacity <= CHUNKS_MAX * first);
  const unit = isCounted ? first : Math.max(1, cache.capacity / UNITS);
  const size = Math.floor(cache.capacity / unit);
  const best: (Sized | undefined)[] = [{ value: 0, objects: [], counts: [] }];
  let unchanged = 0;
  for (const object of keys) {
    let changed = false;
    for (let d = 1; d <= cache.kOf(object); d++) {
      const weight = weightOf(object, d);
      const value = valueOf(object, d);
      if (value <= 0 || weight > size) continue;
      for (const config of best) if (config && relax(config, object, d, weight, value)) changed = true;
      for (let from = size; from >= 0; from--) {
        const config = best[from];
        if (config && add(config, from, object, d, weight, value)) changed = true;
      }
    }
    unchanged = changed ? 0 : unchanged + 1;
    if (earlyStop && unchanged >= Math.ceil(size / weightOf(object, cache.kOf(object)))) break;
  }

  /** Fig. 4, lines 15-20: the option comes on top, or in place of a smaller one of the same object. */
  function add(config: Sized, from: number, object: number, d: number, weight: number, value: number): boolean {
    const at = config.objects.indexOf(object);
    if (at >= 0 && config.counts[at]! >= d) return false;
    const to = from + weight - (at < 0 ? 0 : weightOf(object, config.counts[at]!));
    const sum = config.value + value - (at < 0 ? 0 : valueOf(object, config.counts[at]!));
    if (to > size || (best[to]?.value ?? -1) >= sum) return false;
    const keep = (_: number, place: number): boolean => place !== at;
    best[to] = {
      value: sum,
      objects: [...config.objects.filter(keep), object],
      counts: [...config.counts.filter(keep), d],
    };
    return true;
  }

  /** Fig. 5: gives part or all of an old option's room to the new one. */
  function relax(config: Sized, object: number, d: number, weight: number, value: number): boolean {
    if (config.objects.includes(object)) return false;
    let bestValue = config.value;
    let bestAt = -1;
    let bestCount = 0;
    for (let at = 0; at < config.objects.length; at++) {
      const old = config.objects[at]!;
      const oldCount = config.counts[at]!;
      const left = weightOf(old, oldCount) - weight;
      if (left < 0) continue;
      let count = oldCount - 1;
      while (count > 0 && weightOf(old, count) > left) count--;
      const after = config.value - valueOf(old, oldCount) + (count > 0 ? valueOf(old, count) : 0) + value;
      if (after <= bestValue) continue;
      bestValue = after;
      bestAt = at;
      bestCount = count;
    }
    if (bestAt < 0) return false;
    config.value = bestValue;
    if (bestCount > 0) config.counts[bestAt] = bestCount;
    else {
      config.objects.splice(bestAt, 1);
      config.counts.splice(bestAt, 1);
    }
    config.objects.push(object);
    config.counts.push(d);
    return true;
  }

  // The full size may never have been reached exactly: then the most valuable smaller configuration is the answer.
  let answer = best[0]!;
  for (const config of best) if (config && config.value > answer.value) answer = config;
  const count = new Uint8Array(cache.objects);
  for (const [at, object] of answer.objects.entries()) count[object] = answer.counts[at]!;
  return count;
}
