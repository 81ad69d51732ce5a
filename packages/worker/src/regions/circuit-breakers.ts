/**
 * Circuit breakers: a region that fails five requests in a row moves to the end of the read plan at once; the probes of
 * the Cron Trigger take a period to notice. After a while one request tries the region again.
 *
 * An open breaker blocks nothing: a read that needs the region to reach k chunks still asks it, and an answer closes
 * the breaker.
 */
import { AgaroseError, type Clock, type FetchPort } from "@agarose/core";
import { SourceHealth } from "@agarose/core/sources";

/** Failures in a row that open a breaker. */
export const FAILURES_MAX = 5;
/** After so long without an answer, another request may try. */
const TRIAL_MS = 10_000;

/** The breakers of one isolate, by region or peer. */
export class CircuitBreakers {
  readonly #clock: Clock;
  readonly #health: SourceHealth;
  /** Failures in a row. */
  readonly #failures = new Map<string, number>();
  /** When the request was sent that tries a region again. */
  readonly #trialsMs = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#health = new SourceHealth(clock);
  }

  /**
   * Returns whether the source counts as down now. A half-open breaker counts as open only while a trial is running.
   */
  isOpen(source: string): boolean {
    const sinceMs = this.#trialsMs.get(source) ?? Number.NEGATIVE_INFINITY;
    return this.#health.isAvoided(source) || this.#clock.now() - sinceMs < TRIAL_MS;
  }

  /** Records a good answer of a source whose requests do not pass `guard`. */
  succeeded(source: string): void {
    this.#trialsMs.delete(source);
    this.#failures.delete(source);
    this.#health.succeeded(source);
  }

  /** Records a failure of such a source. */
  failed(source: string): void {
    this.#trialsMs.delete(source);
    const failures = (this.#failures.get(source) ?? 0) + 1;
    this.#failures.set(source, failures);
    if (failures >= FAILURES_MAX) this.#health.failed(source);
  }

  /** Returns `fetch` for the bucket of `region`, with every outcome recorded. */
  guard(region: string, fetch: FetchPort): FetchPort {
    return async (url, init) => {
      const isSuspect = (this.#failures.get(region) ?? 0) >= FAILURES_MAX;
      if (isSuspect && !this.isOpen(region)) this.#trialsMs.set(region, this.#clock.now());
      try {
        const response = await fetch(url, init);
        if (response.status >= 500 || response.status === 429) this.failed(region);
        else this.succeeded(region);
        return response;
      } catch (error) {
        // Neither an abort nor a refusal of this Worker says anything about the region.
        if (init.signal?.aborted || error instanceof AgaroseError) this.#trialsMs.delete(region);
        else this.failed(region);
        throw error;
      }
    };
  }
}
