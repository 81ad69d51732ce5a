/** Popularity per period for objects known by number: Agar's moving average (section IV-A). */

import type { SnapshotReader } from "./snapshot.ts";

export class PeriodPopularity {
  readonly popularity: Float64Array;
  readonly #counts: Float64Array;
  readonly #alpha: number;

  constructor(objects: number, alpha: number, state?: SnapshotReader) {
    this.popularity = state?.float64(objects) ?? new Float64Array(objects);
    this.#counts = state?.float64(objects) ?? new Float64Array(objects);
    this.#alpha = alpha;
  }

  record(object: number): void {
    this.#counts[object]! += 1;
  }

  forget(object: number): void {
    this.#counts[object] = 0;
    this.popularity[object] = 0;
  }

  /** popularity = alpha x requests of the period that ends + (1 - alpha) x popularity. */
  endPeriod(): Float64Array {
    for (let o = 0; o < this.#counts.length; o++) {
      this.popularity[o] = this.#alpha * this.#counts[o]! + (1 - this.#alpha) * this.popularity[o]!;
    }
    this.#counts.fill(0);
    return this.popularity;
  }

  /** What the constructor reads back. */
  lists(): Float64Array[] {
    return [this.popularity, this.#counts];
  }
}
