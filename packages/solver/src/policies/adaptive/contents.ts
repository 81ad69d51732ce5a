/** The objects that the adaptive policy keeps in the cache, and what each unit of their weight is worth. */

import { keptObjects } from "../../policy/policy.ts";
import type { PolicyCache } from "../../policy/policy.ts";

/** Worth is request probability x milliseconds saved per unit of weight. */
export class Contents {
  /** Kept objects in the order they came in. May list objects that the cache lost, until `dropLost`. */
  objects: number[];
  readonly #cache: PolicyCache;
  readonly #estimate: Float64Array;
  readonly #isKept: Uint8Array;
  /** Per object: the most milliseconds that a unit of weight saves. */
  readonly #densest: Float64Array;
  /** Per kept object: the least milliseconds that giving up a unit of weight costs. */
  readonly #cheapest: Float64Array;

  /**
   * `estimate` is the live request probability per object; `known` lists the objects of a snapshot, which come first.
   */
  constructor(cache: PolicyCache, estimate: Float64Array, known: readonly number[]) {
    this.#cache = cache;
    this.#estimate = estimate;
    this.objects = [...new Set([...known, ...keptObjects(cache)])];
    this.#isKept = new Uint8Array(cache.objects);
    for (const object of this.objects) this.#isKept[object] = 1;
    this.#densest = new Float64Array(cache.objects);
    this.#cheapest = new Float64Array(cache.objects);
    this.measure();
  }

  /** Recomputes what every object saves: to be called after the cache measured new latencies. */
  measure(): void {
    for (let o = 0; o < this.#cache.objects; o++) this.measureDensest(o);
    for (const object of this.objects) this.measureCheapest(object);
  }

  /** Recomputes the most that a unit of the object's weight saves. */
  measureDensest(object: number): void {
    const cache = this.#cache;
    let most = 0;
    for (let d = 1; d <= cache.kOf(object); d++) most = Math.max(most, cache.savedMs(object, d) / d);
    this.#densest[object] = most / cache.chunkWeight[object]!;
  }

  /** Recomputes the least that giving up a unit of the object's weight costs. */
  measureCheapest(object: number): void {
    const cache = this.#cache;
    const has = cache.countOf(object);
    let least = Infinity;
    for (let d = 0; d < has; d++) {
      const lost = cache.savedMs(object, has) - (d === 0 ? 0 : cache.savedMs(object, d));
      least = Math.min(least, lost / (has - d));
    }
    this.#cheapest[object] = least / cache.chunkWeight[object]!;
  }

  /** The most that a unit of the object's weight could be worth in the cache. */
  worthMost(object: number): number {
    return this.#estimate[object]! * this.#densest[object]!;
  }

  /** The least that a unit of weight in the cache is worth; Infinity when the cache is empty. */
  lowestPrice(): number {
    let lowest = Infinity;
    for (const object of this.objects) lowest = Math.min(lowest, this.#estimate[object]! * this.#cheapest[object]!);
    return lowest;
  }

  /** Weight of the chunks kept of the object. */
  weightOf(object: number): number {
    return this.#cache.countOf(object) * this.#cache.chunkWeight[object]!;
  }

  /** Lists the object among the kept ones. */
  add(object: number): void {
    if (this.#isKept[object]) return;
    this.#isKept[object] = 1;
    this.objects.push(object);
  }

  /** Drops the objects of which the cache keeps nothing any more. */
  dropLost(): void {
    for (const object of this.objects) this.#isKept[object] = this.#cache.countOf(object) > 0 ? 1 : 0;
    this.objects = this.objects.filter((object) => this.#isKept[object]);
  }

  /** Drops one object, which the cache no longer keeps. */
  drop(object: number): void {
    this.#isKept[object] = 0;
    this.objects.splice(this.objects.indexOf(object), 1);
  }

  /** The kept objects of least worth besides `object` that weigh at least `needed` together, or all of them. */
  leastWorthwhile(object: number, needed: number): number[] {
    const others: number[] = [];
    const worth: number[] = [];
    let weight = 0;
    if (needed <= 0) return others;
    /** Dearer objects are of no interest once there is enough: nearly all, so this is compared first. */
    let dearest = Infinity;
    for (const other of this.objects) {
      const own = this.#estimate[other]! * this.#cheapest[other]!;
      if (own >= dearest || other === object || this.#cache.countOf(other) === 0) continue;
      let at = others.length;
      while (at > 0 && worth[at - 1]! > own) at--;
      others.splice(at, 0, other);
      worth.splice(at, 0, own);
      weight += this.weightOf(other);
      for (let last = this.weightOf(others.at(-1)!); weight - last >= needed; last = this.weightOf(others.at(-1)!)) {
        others.pop();
        worth.pop();
        weight -= last;
      }
      if (weight >= needed) dearest = worth.at(-1)!;
    }
    return others;
  }
}
