/** The objects that the adaptive policy keeps in the cache, and what each unit of their weight is worth. */
import { keptObjects, type PolicyCache } from "../../policy/policy.ts";
import { LeastFirst } from "./least-first.ts";

/** Worth is request probability x milliseconds saved per unit of weight. */
export class Contents {
  /** Kept objects. May list objects that the cache lost, until `dropLost`. */
  readonly objects: number[] = [];
  readonly #cache: PolicyCache;
  readonly #estimate: Float64Array;
  /** Place of each kept object in `objects`, counted from 1; 0 for others. */
  readonly #placeOf: Int32Array;
  /** Per object: the most milliseconds that a unit of weight saves. */
  readonly #densest: Float64Array;
  /** Per kept object: the least milliseconds that giving up a unit of weight costs. */
  readonly #cheapest: Float64Array;
  /** The kept objects by the least that a unit of their weight is worth. */
  readonly #byWorth: LeastFirst;

  /**
   * `estimate` is the live request probability per object, and `revalue` must be called when one changes. `known` lists
   * the objects of a snapshot, which come first.
   */
  constructor(cache: PolicyCache, estimate: Float64Array, known: readonly number[]) {
    this.#cache = cache;
    this.#estimate = estimate;
    this.#placeOf = new Int32Array(cache.objects);
    this.#densest = new Float64Array(cache.objects);
    this.#cheapest = new Float64Array(cache.objects);
    this.#byWorth = new LeastFirst(cache.objects);
    for (const object of known) this.#add(object);
    for (const object of keptObjects(cache)) this.#add(object);
    this.measure();
  }

  /** Recomputes what every object saves: to be called after the cache measured new latencies. */
  measure(): void {
    for (let o = 0; o < this.#cache.objects; o++) this.#measureDensest(o);
    for (const object of this.objects) this.#measureCheapest(object);
  }

  /** Takes what the cache keeps of the object, and what that saves. */
  update(object: number): void {
    this.#measureDensest(object);
    this.updateKept(object);
  }

  /** Takes what the cache keeps of the object. */
  updateKept(object: number): void {
    if (this.#cache.countOf(object) === 0) return this.#drop(object);
    this.#add(object);
    this.#measureCheapest(object);
  }

  /** Computes the most that a unit of the object's weight saves. */
  #measureDensest(object: number): void {
    const cache = this.#cache;
    let most = 0;
    for (let d = 1; d <= cache.kOf(object); d++) most = Math.max(most, cache.savedMs(object, d) / d);
    this.#densest[object] = most / cache.chunkWeight[object]!;
  }

  /** Computes the least that giving up a unit of the object's weight costs. */
  #measureCheapest(object: number): void {
    const cache = this.#cache;
    const has = cache.countOf(object);
    let least = Infinity;
    for (let d = 0; d < has; d++) {
      const lost = cache.savedMs(object, has) - (d === 0 ? 0 : cache.savedMs(object, d));
      least = Math.min(least, lost / (has - d));
    }
    this.#cheapest[object] = least / cache.chunkWeight[object]!;
    this.revalue(object);
  }

  revalue(object: number): void {
    if (this.#placeOf[object] === 0) return;
    const cheapest = this.#cheapest[object]!;
    // An object that the cache has lost has no price, whatever its estimate.
    this.#byWorth.set(object, cheapest === Infinity ? Infinity : cheapest * this.#estimate[object]!);
  }

  /** The most that a unit of the object's weight could be worth in the cache. */
  worthMost(object: number): number {
    return this.#estimate[object]! * this.#densest[object]!;
  }

  /** The least that a unit of weight in the cache is worth; Infinity when the cache is empty. */
  get lowestPrice(): number {
    return this.#byWorth.least;
  }

  weightOf(object: number): number {
    return this.#cache.countOf(object) * this.#cache.chunkWeight[object]!;
  }

  /** Lists the object among the kept ones. */
  #add(object: number): void {
    if (this.#placeOf[object]! > 0) return;
    this.#placeOf[object] = this.objects.push(object);
    this.revalue(object);
  }

  /** Drops the objects of which the cache keeps nothing any more. */
  dropLost(): void {
    for (const object of this.objects.slice()) if (this.#cache.countOf(object) === 0) this.#drop(object);
  }

  /** Drops one object, which the cache no longer keeps. */
  #drop(object: number): void {
    const place = this.#placeOf[object]!;
    if (place === 0) return;
    this.#byWorth.remove(object);
    this.#placeOf[object] = 0;
    const last = this.objects.pop()!;
    if (last === object) return;
    this.objects[place - 1] = last;
    this.#placeOf[last] = place;
  }

  /** The kept objects of least worth besides `object` that weigh at least `needed` together, or all of them. */
  leastWorthwhile(object: number, needed: number): number[] {
    const others: number[] = [];
    if (needed <= 0) return others;
    const taken: number[] = [];
    for (let weight = 0; weight < needed && this.#byWorth.size > 0;) {
      const other = this.#byWorth.take();
      taken.push(other);
      if (other === object || this.#cache.countOf(other) === 0) continue;
      others.push(other);
      weight += this.weightOf(other);
    }
    for (const other of taken) this.revalue(other);
    return others;
  }
}
