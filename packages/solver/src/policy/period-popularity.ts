/** Popularity per period as an exponentially weighted moving average (Agar, ICDCS 2017, section IV-A). */
import type { SnapshotReader } from "./snapshot.ts";

/**
 * Counts requests per object and averages them over periods. `alpha` is the weight of the newest period, above 0 and at
 * most 1.
 */
export class PeriodPopularity {
  /** Requests per period of each object, as of the last closed period. */
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

  /** Sets the object back to no requests. */
  forget(object: number): void {
    this.#counts[object] = 0;
    this.popularity[object] = 0;
  }

  /** Closes the period: popularity = alpha x its requests + (1 - alpha) x popularity. Returns `popularity`. */
  endPeriod(): Float64Array {
    for (let o = 0; o < this.#counts.length; o++) {
      this.popularity[o] = this.#alpha * this.#counts[o]! + (1 - this.#alpha) * this.popularity[o]!;
    }
    this.#counts.fill(0);
    return this.popularity;
  }

  /** The lists that the constructor reads from a snapshot. */
  lists(): Float64Array[] {
    return [this.popularity, this.#counts];
  }
}
