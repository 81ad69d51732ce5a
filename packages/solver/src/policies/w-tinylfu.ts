/**
 * Window-TinyLFU (Einziger, Friedman & Manes 2017) with c chunks per object: new objects live in a small LRU window;
 * an object that leaves the window enters the main cache, a segmented LRU, only if it was read more often than the main
 * cache's next victim. Counts are halved at regular intervals, so that old popularity fades.
 *
 * Departures: counts are exact instead of sketched, one per object; sizes are compared by one victim after the other.
 */
import { keptObjects, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";
import { Segment } from "./segment.ts";

/** Shares of the cache: the window, and of the main cache the protected segment. */
const WINDOW_SHARE = 0.01;
const PROTECTED_SHARE = 0.8;
/** Counts are halved after this many reads per object that fits, and after this many reads at the earliest. */
const SAMPLE_PER_OBJECT = 10;
const SAMPLE_MIN = 100;

/** Creates the policy for `cache`, as new or from a snapshot. `chunksOf`: how many chunks of an object it keeps. */
export function wTinyLfu(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  return new WindowTinyLfu(cache, chunksOf, state);
}

class WindowTinyLfu implements Policy {
  readonly #cache: PolicyCache;
  readonly #chunksOf: (object: number) => number;
  readonly #frequency: Float64Array;
  readonly #window: Segment;
  readonly #probation: Segment;
  readonly #protected: Segment;
  readonly #segments: readonly Segment[];
  /** Reads since counts were halved. */
  #sample: number;
  /** Sum of the sizes of all objects read, and how many reads there were. */
  #sizeSum: number;
  #reads: number;

  constructor(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader) {
    this.#cache = cache;
    this.#chunksOf = chunksOf;
    // The order of reading is that of `snapshot`.
    this.#frequency = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
    [this.#sample, this.#sizeSum, this.#reads] = (state?.float64(3) ?? [0, 0, 0]) as [number, number, number];
    const segment = (): Segment => new Segment((object) => this.#sizeOf(object), state);
    this.#window = segment();
    this.#probation = segment();
    this.#protected = segment();
    this.#segments = [this.#window, this.#probation, this.#protected];
    for (const object of keptObjects(cache)) {
      if (!this.#segments.some((own) => own.has(object))) this.#probation.add(object);
    }
  }

  onRequest(object: number): void {
    const size = this.#sizeOf(object);
    if (size > this.#cache.capacity) return;
    this.#count(object);
    if (this.#window.touch(object) || this.#protected.touch(object)) return this.#fill(object);
    if (this.#probation.has(object)) this.#promote(object);
    else if (size > this.#windowMax()) {
      // Too large for the window: it is a candidate for the main cache at once.
      this.#admit(object);
      if (!this.#probation.has(object)) return;
    } else {
      while (this.#window.size + size > this.#windowMax()) this.#admit(this.#window.removeOldest());
      this.#window.add(object);
    }
    this.#fill(object);
  }

  forget(object: number): void {
    this.#frequency[object] = 0;
    for (const segment of this.#segments) segment.remove(object);
  }

  snapshot(): Uint8Array {
    return packSnapshot("w-tinylfu", this.#cache.objects, [
      this.#frequency,
      Float64Array.of(this.#sample, this.#sizeSum, this.#reads),
      ...this.#segments.map((segment) => [...segment.objects()]),
    ]);
  }

  #sizeOf(object: number): number {
    return this.#chunksOf(object) * this.#cache.chunkWeight[object]!;
  }

  /** The window holds at least one object of mean size, or no object could ever come in. */
  #windowMax(): number {
    const { capacity } = this.#cache;
    return Math.max(WINDOW_SHARE * capacity, Math.min(capacity, this.#sizeSum / this.#reads));
  }

  #count(object: number): void {
    const frequency = this.#frequency;
    frequency[object]! += 1;
    this.#sizeSum += this.#sizeOf(object);
    this.#reads += 1;
    const sampleMax = Math.max(SAMPLE_MIN, (SAMPLE_PER_OBJECT * this.#cache.capacity) / (this.#sizeSum / this.#reads));
    if (++this.#sample < sampleMax) return;
    this.#sample = 0;
    for (let o = 0; o < frequency.length; o++) frequency[o]! /= 2;
  }

  #promote(object: number): void {
    this.#probation.remove(object);
    this.#protected.add(object);
    const protectedMax = PROTECTED_SHARE * (this.#cache.capacity - this.#windowMax());
    while (this.#protected.size > protectedMax && this.#protected.oldest() !== object) {
      this.#probation.add(this.#protected.removeOldest());
    }
  }

  #drop(object: number): void {
    for (const segment of this.#segments) segment.remove(object);
    this.#cache.keep(object, 0);
  }

  /** The candidate leaves the window: it replaces objects that were read less, or leaves the cache. */
  #admit(candidate: number): void {
    const size = this.#sizeOf(candidate);
    const victims: number[] = [];
    let freed = this.#cache.capacity - this.#windowMax() - this.#probation.size - this.#protected.size;
    for (const segment of [this.#probation, this.#protected]) {
      for (const victim of segment.objects()) {
        if (freed >= size) break;
        if (this.#frequency[victim]! >= this.#frequency[candidate]!) return this.#drop(candidate);
        victims.push(victim);
        freed += this.#sizeOf(victim);
      }
    }
    if (freed < size) return this.#drop(candidate);
    for (const victim of victims) this.#drop(victim);
    this.#probation.add(candidate);
  }

  /**
   * Fetches the chunks of an object that is in a segment. The cache may hold chunks that no segment counts; then the
   * main cache makes room.
   */
  #fill(object: number): void {
    const cache = this.#cache;
    const chunks = this.#chunksOf(object);
    const needed = (chunks - cache.countOf(object)) * cache.chunkWeight[object]!;
    for (const segment of [this.#probation, this.#protected, this.#window]) {
      for (const victim of segment.objects()) {
        if (cache.used + needed <= cache.capacity) break;
        if (victim !== object) this.#drop(victim);
      }
    }
    if (needed !== 0) cache.keep(object, chunks);
  }
}
