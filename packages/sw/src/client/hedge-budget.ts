/**
 * Bounds the bytes that a client requests without using them: hedged requests have a budget of bytes, and delta drops
 * to 0 while it does not help.
 */
import type { Clock, LatePiece, RequestRecord } from "@agarose/core";

/** For every byte used, this share may be requested again because it is late. */
export const HEDGED_SHARE = 0.03;
/** The budget at the start, and at most. */
export const HEDGE_BYTES_MAX = 1024 * 1024;
/** Weight of one stripe in the running share of stripes that used a request beyond k. */
const GAIN = 1 / 64;
/** Below this share, reads start with exactly k requests until chunks are late again. */
const WORTH_MIN = 0.02;
/** A request that runs beside another one for this share of its time shares the line with it. */
const BESIDE_SHARE = 0.5;
/** How long requests that have ended count as such. */
const BESIDE_MS_MAX = 5_000;

/** The budget of one client. */
export class HedgeBudget {
  readonly #clock: Pick<Clock, "now">;
  /** Requests to regions that are under way or have just ended. */
  readonly #recent = new Set<RequestRecord>();
  #bytes = HEDGE_BYTES_MAX;
  #worth = 1;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /**
   * For the reader. A stripe that is late once needs budget; one that is late twice is stuck and always gets help. A
   * piece that flows gets help where k others would be there sooner: on a busy line they would only make it busier.
   */
  readonly hedge = (bytes: number, times: number, piece?: LatePiece): boolean => {
    if (piece?.restMs !== undefined && !this.#isWorth(piece, piece.restMs)) return false;
    if (times === 1 && bytes > this.#bytes) return false;
    this.#bytes -= piece?.costBytes ?? bytes;
    return true;
  };

  /** Follows a request from its start to its end. */
  note(record: RequestRecord): void {
    if (record.kind !== "region") return;
    this.#recent.add(record);
    const sinceMs = this.#clock.now() - BESIDE_MS_MAX;
    for (const one of this.#recent) if (one.endMs !== undefined && one.endMs < sinceMs) this.#recent.delete(one);
  }

  /** Whether a piece that flows is slow because of its region, and not because of the line. */
  #isWorth({ record, othersMs, costBytes }: LatePiece, restMs: number): boolean {
    const nowMs = this.#clock.now();
    const enoughMs = BESIDE_SHARE * (nowMs - record.startMs);
    // Each of them has had a share of the line: this one too.
    const beside = [...this.#recent].filter(
      ({ startMs, endMs = nowMs }) => endMs - Math.max(startMs, record.startMs) >= enoughMs,
    ).length;
    // What k others are believed to take is measured one at a time: side by side they share the line, too.
    return restMs / Math.max(1, beside) > (costBytes / record.bytes) * othersMs;
  }

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
