/**
 * Circuit breakers: a region that fails five requests in a row moves to the end of the read plan at once; the probes of
 * the Cron Trigger take a period to notice. After a while one request tries the region again.
 *
 * An open breaker blocks nothing: a read that needs the region to reach k chunks still asks it, and an answer closes
 * the breaker.
 */
import { AgaroseError, type Clock, type FetchPort } from "@agarose/core";

/** Failures in a row that open a breaker. */
export const FAILURES_MAX = 5;
/** How long a breaker stays open; each failed trial doubles it, up to `OPEN_MS_MAX`. */
export const OPEN_MS = 5_000;
/** The longest time that a breaker stays open. */
export const OPEN_MS_MAX = 60_000;
/** After so long without an answer, another request may try. */
const TRIAL_MS = 10_000;

interface Breaker {
  failures: number;
  openMs: number;
  untilMs: number;
  trialSinceMs: number;
}

/** The breakers of one isolate, by region or peer. */
export class CircuitBreakers {
  readonly #clock: Clock;
  readonly #breakers = new Map<string, Breaker>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Returns whether the region counts as down now. A half-open breaker counts as open only while a trial is running.
   */
  isOpen(region: string): boolean {
    const breaker = this.#breakers.get(region);
    if (!breaker || breaker.failures < FAILURES_MAX) return false;
    const now = this.#clock.now();
    return now < breaker.untilMs || now - breaker.trialSinceMs < TRIAL_MS;
  }

  /** Notes a good answer of a source whose requests do not pass `guard`. */
  succeeded(source: string): void {
    this.#breakers.delete(source);
  }

  /** Notes a failure of such a source. */
  failed(source: string): void {
    this.#failed(this.#breaker(source));
  }

  /** Returns `fetch` for the bucket of `region`, with every outcome noted. */
  guard(region: string, fetch: FetchPort): FetchPort {
    return async (url, init) => {
      const breaker = this.#breaker(region);
      if (breaker.failures >= FAILURES_MAX && !this.isOpen(region)) breaker.trialSinceMs = this.#clock.now();
      try {
        const response = await fetch(url, init);
        if (response.status >= 500 || response.status === 429) this.#failed(breaker);
        else this.#breakers.delete(region);
        return response;
      } catch (error) {
        // Neither an abort nor a refusal of this Worker says anything about the region.
        if (init.signal?.aborted || error instanceof AgaroseError) breaker.trialSinceMs = Number.NEGATIVE_INFINITY;
        else this.#failed(breaker);
        throw error;
      }
    };
  }

  #breaker(region: string): Breaker {
    let breaker = this.#breakers.get(region);
    if (!breaker) {
      breaker = { failures: 0, openMs: 0, untilMs: 0, trialSinceMs: Number.NEGATIVE_INFINITY };
      this.#breakers.set(region, breaker);
    }
    return breaker;
  }

  #failed(breaker: Breaker): void {
    const now = this.#clock.now();
    breaker.failures++;
    breaker.trialSinceMs = Number.NEGATIVE_INFINITY;
    // Requests of last resort may fail while the breaker is open. They are no trials.
    if (breaker.failures < FAILURES_MAX || now < breaker.untilMs) return;
    breaker.openMs = Math.min(OPEN_MS_MAX, Math.max(OPEN_MS, 2 * breaker.openMs));
    breaker.untilMs = now + breaker.openMs;
  }
}
