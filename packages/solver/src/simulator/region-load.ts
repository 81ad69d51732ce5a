/**
 * What extra requests cost the regions that serve them. Late binding asks for more chunks than it needs; in a region that
 * is busy for a share u of the time, a load larger by the factor x makes requests slower by (1 - u) / (1 - u x), as in a
 * queue. The load without extra requests is part of the scenario's latencies already.
 */

const WINDOW_READS = 500;
/** Overload is capped: beyond it the formula has no steady state. */
const BUSY_MAX = 0.95;

export class RegionLoad {
  readonly #utilization: number;
  readonly #usual: number;
  /** Extra requests per read of late, by region. */
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

  /** By how much a region's latency is longer than without extra requests. */
  factor(region: number): number {
    const busy = Math.min(BUSY_MAX, this.#utilization * (1 + this.#extra[region]! / this.#usual));
    return (1 - this.#utilization) / (1 - busy);
  }
}
