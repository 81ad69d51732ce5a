/** Numbers by object, of which the least is found at once: a binary heap that knows where each object is. */

/** Objects with a number each. Of equal numbers, that of the lower object comes first. */
export class LeastFirst {
  readonly #heap: Int32Array;
  /** Place of each object in the heap, counted from 1; 0 for others. */
  readonly #placeOf: Int32Array;
  readonly #number: Float64Array;
  #size = 0;

  /** @param objects how many there are at most: 0 to `objects` - 1. */
  constructor(objects: number) {
    this.#heap = new Int32Array(objects + 1);
    this.#placeOf = new Int32Array(objects);
    this.#number = new Float64Array(objects);
  }

  get size(): number {
    return this.#size;
  }

  /** The least number; Infinity when no object has one. */
  get least(): number {
    return this.#size > 0 ? this.#number[this.#heap[1]!]! : Infinity;
  }

  set(object: number, number: number): void {
    const place = this.#placeOf[object] || ++this.#size;
    this.#number[object] = number;
    this.#place(object, place);
  }

  /** Removes the object, if it has a number. */
  remove(object: number): void {
    const place = this.#placeOf[object]!;
    if (place === 0) return;
    this.#placeOf[object] = 0;
    const last = this.#heap[this.#size--]!;
    if (last !== object) this.#place(last, place);
  }

  /** Removes and returns the object with the least number. There must be one. */
  take(): number {
    const object = this.#heap[1]!;
    this.remove(object);
    return object;
  }

  /** Puts the object where its number belongs, from a place that is free or its own. */
  #place(object: number, from: number): void {
    const heap = this.#heap;
    const placeOf = this.#placeOf;
    let place = from;
    for (let parent = place >> 1; parent > 0 && this.#precedes(object, heap[parent]!); parent = place >> 1) {
      placeOf[(heap[place] = heap[parent]!)] = place;
      place = parent;
    }
    for (let child = 2 * place; child <= this.#size; child = 2 * place) {
      if (child < this.#size && this.#precedes(heap[child + 1]!, heap[child]!)) child++;
      if (!this.#precedes(heap[child]!, object)) break;
      placeOf[(heap[place] = heap[child]!)] = place;
      place = child;
    }
    heap[place] = object;
    placeOf[object] = place;
  }

  #precedes(a: number, b: number): boolean {
    const difference = this.#number[a]! - this.#number[b]!;
    return difference < 0 || (!(difference > 0) && a < b);
  }
}
