/**
 * Bounds the bytes that a client requests without using them: hedged requests have a budget of bytes, and delta drops
 * to 0 while it does not help.
 */
import type { RequestRecord } from "@agarose/core/read";

/** For every byte used, this share may be requested again because it is late. */
export const HEDGED_SHARE = 0.03;
/** The budget at the start, and at most. */
export const HEDGE_BYTES_MAX = 1024 * 1024;
/** Weight of one stripe in the running share of stripes that used a request beyond k. */
const GAIN = 1 / 64;
/** Below this share, reads start with exactly k requests until chunks are late again. */
const WORTH_MIN = 0.02;

/** The budget of one client. */
export class HedgeBudget {
  #bytes = HEDGE_BYTES_MAX;
  #worth = 1;

  /** For the reader. What is late once needs budget; what is late twice is stuck and always gets help. */
  readonly hedge = (bytes: number, times: number): boolean => {
    if (times === 1 && bytes > this.#bytes) return false;
    this.#bytes -= bytes;
    return true;
  };

  /** The number of requests beyond k to start with, at most `planned`. */
  delta(planned: number): number {
    return this.#worth < WORTH_MIN ? 0 : planned;
  }

  /** Records the requests of a read that is over, in the order of their start. */
  observe(k: number, requests: Iterable<RequestRecord>): void {
    for (const stripe of Map.groupBy(requests, (request) => request.stripe).values()) {
      const used = stripe.filter(({ outcome }) => outcome === "used");
      const helped = stripe.slice(k).some(({ outcome }) => outcome === "used");
      // A small range asks one chunk alone, which says nothing of delta.
      if (used.length >= k) this.#worth += GAIN * (Number(helped) - this.#worth);
      const earned = HEDGED_SHARE * used.reduce((sum, { bytes }) => sum + bytes, 0);
      this.#bytes = Math.min(HEDGE_BYTES_MAX, this.#bytes + earned);
    }
  }
}
