/**
 * Window-TinyLFU (Einziger, Friedman & Manes 2017) with c chunks per object: new objects live in a small LRU window;
 * what falls out of it enters the main cache, a segmented LRU, only if it was read more often than the main cache's next
 * victim. Counts are halved after every so many reads, so that old fame fades.
 *
 * Departures: counts are exact instead of sketched, since the simulator has memory; sizes are compared by one victim after the other.
 */

import type { Policy, PolicyCache } from "./policy.ts";

const WINDOW_SHARE = 0.01;
const PROTECTED_SHARE = 0.8;
/** Counts are halved after so many reads per object that fits. */
const SAMPLE_PER_OBJECT = 10;

export function wTinyLfu(cache: PolicyCache, chunks: number): Policy {
  const frequency = new Float64Array(cache.objects);
  const sizeOf = (object: number): number => chunks * cache.chunkWeight[object]!;
  const meanSize = (chunks * cache.chunkWeight.reduce((sum, weight) => sum + weight, 0)) / cache.objects;
  const sampleMax = Math.max(100, (SAMPLE_PER_OBJECT * cache.capacity) / meanSize);
  const window = new Segment(sizeOf);
  const probation = new Segment(sizeOf);
  const guarded = new Segment(sizeOf);
  // At least one object must fit the window, or none could ever come in.
  const windowMax = Math.max(WINDOW_SHARE * cache.capacity, Math.min(cache.capacity, meanSize));
  let sample = 0;

  function count(object: number): void {
    frequency[object]! += 1;
    if (++sample < sampleMax) return;
    sample = 0;
    for (let o = 0; o < frequency.length; o++) frequency[o]! /= 2;
  }

  function promote(object: number): void {
    probation.remove(object);
    guarded.add(object);
    const guardedMax = PROTECTED_SHARE * (cache.capacity - windowMax);
    while (guarded.size > guardedMax && guarded.oldest() !== object) probation.add(guarded.removeOldest());
  }

  /** The candidate leaves the window: it takes the place of less read objects, or goes. */
  function admit(candidate: number): void {
    const mainMax = cache.capacity - windowMax;
    const victims: number[] = [];
    let freed = mainMax - probation.size - guarded.size;
    for (const segment of [probation, guarded]) {
      for (const victim of segment.objects()) {
        if (freed >= sizeOf(candidate)) break;
        if (frequency[victim]! >= frequency[candidate]!) return cache.keep(candidate, 0);
        victims.push(victim);
        freed += sizeOf(victim);
      }
    }
    if (freed < sizeOf(candidate)) return cache.keep(candidate, 0);
    for (const victim of victims) {
      probation.remove(victim);
      guarded.remove(victim);
      cache.keep(victim, 0);
    }
    probation.add(candidate);
  }

  return {
    onRequest: (object) => {
      count(object);
      if (window.touch(object) || guarded.touch(object)) return;
      if (probation.has(object)) return promote(object);
      // Too large for the window: it stands for admission at once.
      if (sizeOf(object) > windowMax) {
        admit(object);
        if (probation.has(object)) cache.keep(object, chunks);
        return;
      }
      while (window.size + sizeOf(object) > windowMax) admit(window.removeOldest());
      window.add(object);
      cache.keep(object, chunks);
    },
  };
}

/** Objects by recency with their total size. */
class Segment {
  size = 0;
  private readonly recent = new Set<number>();
  private readonly sizeOf: (object: number) => number;

  constructor(sizeOf: (object: number) => number) {
    this.sizeOf = sizeOf;
  }

  has(object: number): boolean {
    return this.recent.has(object);
  }

  /** Makes the object the most recent one; false when it is not here. */
  touch(object: number): boolean {
    if (!this.recent.delete(object)) return false;
    this.recent.add(object);
    return true;
  }

  add(object: number): void {
    this.recent.add(object);
    this.size += this.sizeOf(object);
  }

  remove(object: number): void {
    if (this.recent.delete(object)) this.size -= this.sizeOf(object);
  }

  /** Oldest first. */
  objects(): Iterable<number> {
    return this.recent;
  }

  oldest(): number | undefined {
    return this.recent.values().next().value;
  }

  removeOldest(): number {
    const oldest = this.oldest()!;
    this.remove(oldest);
    return oldest;
  }
}
