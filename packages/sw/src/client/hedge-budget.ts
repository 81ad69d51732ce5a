/**
 * What may be spent on bytes that are not used: requests beyond delta by a budget of bytes, and delta itself by whether it
 * has been of use.
 */
import type { RequestRecord } from "@agarose/core";

/** Of every byte used, so much may be asked for once more because it is late. */
export const HEDGED_SHARE = 0.03;
/** What may be spent before anything was earned, and saved up at most. */
export const HEDGE_BYTES_MAX = 1024 * 1024;
/** Weight of one stripe in the share of stripes in which a request beyond k was used. */
const GAIN = 1 / 64;
/** Where that is less, no request beyond k is made until chunks are late again. */
const WORTH_MIN = 0.02;

export class HedgeBudget {
  #bytes = HEDGE_BYTES_MAX;
  #worth = 1;

  /** For the reader: a stripe that is late once needs a budget, one that is late twice is stuck. */
  readonly hedge = (bytes: number, times: number): boolean => {
    if (times === 1 && bytes > this.#bytes) return false;
    this.#bytes -= bytes;
    return true;
  };

  /** Requests beyond k to start with, where the plan says `planned`. */
  delta(planned: number): number {
    return this.#worth < WORTH_MIN ? 0 : planned;
  }

  /** Takes in the requests of a read that is over, in the order in which they started. */
  observe(k: number, requests: Iterable<RequestRecord>): void {
    for (const stripe of Map.groupBy(requests, (request) => request.stripe).values()) {
      const used = stripe.filter(({ outcome }) => outcome === "used");
      if (used.length === 0) continue;
      const helped = stripe.slice(k).some(({ outcome }) => outcome === "used");
      this.#worth += GAIN * (Number(helped) - this.#worth);
      const earned = HEDGED_SHARE * used.reduce((sum, { bytes }) => sum + bytes, 0);
      this.#bytes = Math.min(HEDGE_BYTES_MAX, this.#bytes + earned);
    }
  }
}
