/**
 * Window-TinyLFU (Einziger, Friedman & Manes 2017) with c chunks per object: new objects live in a small LRU window;
 * what falls out of it enters the main cache, a segmented LRU, only if it was read more often than the main cache's next
 * victim. Counts are halved after every so many reads, so that old fame fades.
 *
 * Departures: counts are exact instead of sketched, one per object; sizes are compared by one victim after the other.
 */

import { keptObjects } from "../policy/policy.ts";
import type { Policy, PolicyCache } from "../policy/policy.ts";
import { packSnapshot } from "../policy/snapshot.ts";
import type { SnapshotReader } from "../policy/snapshot.ts";

const WINDOW_SHARE = 0.01;
const PROTECTED_SHARE = 0.8;
/** Counts are halved after so many reads per object that fits, and not before so many reads. */
const SAMPLE_PER_OBJECT = 10;
const SAMPLE_MIN = 100;

export function wTinyLfu(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  const frequency = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
  let [sample, sizeSum, reads] = state?.float64(3) ?? [0, 0, 0];
  const sizeOf = (object: number): number => chunksOf(object) * cache.chunkWeight[object]!;
  const [window, probation, guarded] = [0, 1, 2].map(() => new Segment(sizeOf, state)) as [Segment, Segment, Segment];
  const segments = [window, probation, guarded];
  for (const object of keptObjects(cache)) if (!segments.some((segment) => segment.has(object))) probation.add(object);

  /** At least one object of mean size must fit the window, or none could ever come in. */
  const windowMax = (): number => Math.max(WINDOW_SHARE * cache.capacity, Math.min(cache.capacity, sizeSum! / reads!));

  function count(object: number): void {
    frequency[object]! += 1;
    sizeSum! += sizeOf(object);
    reads! += 1;
    if (++sample! < Math.max(SAMPLE_MIN, (SAMPLE_PER_OBJECT * cache.capacity) / (sizeSum! / reads!))) return;
    sample = 0;
    for (let o = 0; o < frequency.length; o++) frequency[o]! /= 2;
  }

  function promote(object: number): void {
    probation.remove(object);
    guarded.add(object);
    const guardedMax = PROTECTED_SHARE * (cache.capacity - windowMax());
    while (guarded.size > guardedMax && guarded.oldest() !== object) probation.add(guarded.removeOldest());
  }

  function drop(object: number): void {
    for (const segment of segments) segment.remove(object);
    cache.keep(object, 0);
  }

  /** The candidate leaves the window: it takes the place of less read objects, or goes. */
  function admit(candidate: number): void {
    const victims: number[] = [];
    let freed = cache.capacity - windowMax() - probation.size - guarded.size;
    for (const segment of [probation, guarded]) {
      for (const victim of segment.objects()) {
        if (freed >= sizeOf(candidate)) break;
        if (frequency[victim]! >= frequency[candidate]!) return drop(candidate);
        victims.push(victim);
        freed += sizeOf(victim);
      }
    }
    if (freed < sizeOf(candidate)) return drop(candidate);
    for (const victim of victims) drop(victim);
    probation.add(candidate);
  }

  /** The object is in a segment. What the segments do not count on may fill the cache: then the main cache gives way. */
  function fill(object: number): void {
    const needed = (chunksOf(object) - cache.countOf(object)) * cache.chunkWeight[object]!;
    for (const segment of [probation, guarded, window]) {
      for (const victim of segment.objects()) {
        if (cache.used + needed <= cache.capacity) break;
        if (victim !== object) drop(victim);
      }
    }
    if (needed !== 0) cache.keep(object, chunksOf(object));
  }

  return {
    onRequest: (object) => {
      const size = sizeOf(object);
      if (size > cache.capacity) return;
      count(object);
      if (window.touch(object) || guarded.touch(object)) return fill(object);
      if (probation.has(object)) promote(object);
      else if (size > windowMax()) {
        // Too large for the window: it stands for admission at once.
        admit(object);
        if (!probation.has(object)) return;
      } else {
        while (window.size + size > windowMax()) admit(window.removeOldest());
        window.add(object);
      }
      fill(object);
    },
    forget: (object) => {
      frequency[object] = 0;
      for (const segment of segments) segment.remove(object);
    },
    snapshot: () =>
      packSnapshot("w-tinylfu", cache.objects, [
        frequency,
        Float64Array.of(sample!, sizeSum!, reads!),
        ...segments.map((segment) => [...segment.objects()]),
      ]),
  };
}

/** Objects by recency with their total size. */
class Segment {
  size = 0;
  /** Size by object, oldest first. */
  readonly #recent = new Map<number, number>();
  readonly #sizeOf: (object: number) => number;

  constructor(sizeOf: (object: number) => number, state?: SnapshotReader) {
    this.#sizeOf = sizeOf;
    for (const object of state?.objectList() ?? []) this.add(object);
  }

  has(object: number): boolean {
    return this.#recent.has(object);
  }

  /** Makes the object the most recent one; false when it is not here. */
  touch(object: number): boolean {
    const size = this.#recent.get(object);
    if (size === undefined) return false;
    this.#recent.delete(object);
    this.#recent.set(object, size);
    return true;
  }

  add(object: number): void {
    this.#recent.set(object, this.#sizeOf(object));
    this.size += this.#sizeOf(object);
  }

  remove(object: number): void {
    this.size -= this.#recent.get(object) ?? 0;
    this.#recent.delete(object);
  }

  /** Oldest first. */
  objects(): Iterable<number> {
    return this.#recent.keys();
  }

  oldest(): number | undefined {
    return this.#recent.keys().next().value;
  }

  removeOldest(): number {
    const oldest = this.oldest()!;
    this.remove(oldest);
    return oldest;
  }
}
