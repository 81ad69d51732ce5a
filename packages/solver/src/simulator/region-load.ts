/**
 * What extra requests cost the regions that serve them. Late binding asks for more chunks than it needs. In a region
 * that is busy for a share u of the time, x times the load makes requests slower by (1 - u) / (1 - u x), as in a queue.
 * The scenario's latencies already contain the load without extra requests.
 */

const WINDOW_READS = 500;
/** Overload is capped: beyond it the formula has no steady state. */
const BUSY_MAX = 0.95;

/** The recent extra load of every region. */
export class RegionLoad {
  readonly #utilization: number;
  readonly #usual: number;
  /** Recent extra requests per read, by region. */
  readonly #extra: Float64Array;
  readonly #counted: Float64Array;

  constructor(utilization: number, regions: number, k: number) {
    this.#utilization = utilization;
    this.#usual = k / regions;
    this.#extra = new Float64Array(regions);
    this.#counted = new Float64Array(regions);
  }

  countExtra(region: number): void {
    this.#counted[region]! += 1;
  }

  endRead(): void {
    for (let r = 0; r < this.#extra.length; r++) {
      this.#extra[r]! += (this.#counted[r]! - this.#extra[r]!) / WINDOW_READS;
      this.#counted[r] = 0;
    }
  }

  /** Factor by which extra requests lengthen a region's latency, at least 1. */
  factor(region: number): number {
    const busy = Math.min(BUSY_MAX, this.#utilization * (1 + this.#extra[region]! / this.#usual));
    return (1 - this.#utilization) / (1 - busy);
  }
}
