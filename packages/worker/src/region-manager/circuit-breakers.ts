/**
 * Circuit breakers: a region that fails one request after the other is not asked first any more, from one request to the
 * next, where the probes of the Cron Trigger take a period to notice. After a while one request tries it again.
 *
 * An open breaker puts a region last in the read plan and closes nothing off: a read that needs the region to reach k
 * chunks still asks it, and an answer closes the breaker.
 */
import { AgaroseError, type Clock, type FetchPort } from "@agarose/core";

/** Failures in a row that open a breaker. */
export const FAILURES_MAX = 5;
/** How long it stays open; twice as long each time the trial fails, up to `OPEN_MS_MAX`. */
export const OPEN_MS = 5_000;
export const OPEN_MS_MAX = 60_000;
/** A trial without an answer for this long makes room for another. */
const TRIAL_MS = 10_000;

interface Breaker {
  failures: number;
  openMs: number;
  untilMs: number;
  trialSinceMs: number;
}

export class CircuitBreakers {
  readonly #clock: Clock;
  readonly #breakers = new Map<string, Breaker>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether the region counts as down now. Half-open, it does not until a request tries it, and does while one does. */
  isOpen(region: string): boolean {
    const breaker = this.#breakers.get(region);
    if (!breaker || breaker.failures < FAILURES_MAX) return false;
    const now = this.#clock.now();
    return now < breaker.untilMs || now - breaker.trialSinceMs < TRIAL_MS;
  }

  /** Notes an answer that was what it should be, of a source whose requests are not guarded. */
  succeeded(source: string): void {
    this.#breakers.delete(source);
  }

  failed(source: string): void {
    this.#failed(this.#breaker(source));
  }

  /** `fetch` for the bucket of `region`, its outcomes noted. */
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
        // Neither an abort nor a refusal of our own says anything of the region.
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
    // Requests of last resort fail while it is open, and are no trials.
    if (breaker.failures < FAILURES_MAX || now < breaker.untilMs) return;
    breaker.openMs = Math.min(OPEN_MS_MAX, Math.max(OPEN_MS, 2 * breaker.openMs));
    breaker.untilMs = now + breaker.openMs;
  }
}
