/** How often objects are wanted: Agar's average per period, and a rate estimator that needs no periods. */

/** Popularity per period as an exponentially weighted moving average (Agar, section IV-A). */
export class EwmaPopularity {
  /** Weight of the newest period, above 0 and at most 1. */
  readonly alpha: number;
  #popularity = new Map<string, number>();
  #counts = new Map<string, number>();

  constructor(alpha = 0.8) {
    this.alpha = alpha;
  }

  record(key: string, requests = 1): void {
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + requests);
  }

  /** Closes the period: popularity = alpha x its requests + (1 - alpha) x popularity before. Returns all objects. */
  endPeriod(): ReadonlyMap<string, number> {
    for (const [key, popularity] of this.#popularity) {
      const count = this.#counts.get(key) ?? 0;
      const next = this.alpha * count + (1 - this.alpha) * popularity;
      // Forgotten objects leave, or the map would hold every key ever asked for.
      if (next < POPULARITY_FORGOTTEN) this.#popularity.delete(key);
      else this.#popularity.set(key, next);
      this.#counts.delete(key);
    }
    for (const [key, count] of this.#counts) this.#popularity.set(key, this.alpha * count);
    this.#counts.clear();
    return this.#popularity;
  }

  /** Requests per period as of the last closed one. */
  popularityOf(key: string): number {
    return this.#popularity.get(key) ?? 0;
  }
}

const POPULARITY_FORGOTTEN = 1e-6;

/**
 * Discounting rate estimator (used by Liu et al., section V-A): a counter per object that grows by one with each request
 * and is multiplied by `decay` every `everySeconds`. In a steady state the counter is rate x everySeconds / (1 - decay).
 */
export class DiscountingRate {
  readonly decay: number;
  readonly everySeconds: number;
  #counters = new Map<string, { count: number; steps: number }>();

  constructor(decay = 0.9, everySeconds = 60) {
    this.decay = decay;
    this.everySeconds = everySeconds;
  }

  record(key: string, atSeconds: number): void {
    this.#counters.set(key, { count: this.#countAt(key, atSeconds) + 1, steps: this.#steps(atSeconds) });
  }

  /** Estimated requests per second. */
  rateOf(key: string, atSeconds: number): number {
    return (this.#countAt(key, atSeconds) * (1 - this.decay)) / this.everySeconds;
  }

  #countAt(key: string, atSeconds: number): number {
    const counter = this.#counters.get(key);
    return counter ? counter.count * this.decay ** (this.#steps(atSeconds) - counter.steps) : 0;
  }

  #steps(atSeconds: number): number {
    return Math.floor(atSeconds / this.everySeconds);
  }
}
