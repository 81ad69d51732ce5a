/**
 * Bounds the bytes that a client requests without using them: hedged requests have a budget of bytes, and delta drops
 * to 0 while it does not help.
 */
import type { Clock } from "@agarose/core";
import type { LatePiece, RequestRecord } from "@agarose/core/read";

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
/** How long requests that have ended count as such, and how long others are a reason for silence. */
const BESIDE_MS_MAX = 5_000;
/** When so much more has come of each request that flows, one that was silent has missed its turn. */
const TURN_BYTES = 128 * 1024;

/** The budget of one client. */
export class HedgeBudget {
  readonly #clock: Pick<Clock, "now">;
  /**
   * Requests to regions that are under way or have just ended. The value is how many bytes had come of all when a
   * silent one was first late, or its region last sent something else.
   */
  readonly #recent = new Map<RequestRecord, number>();
  /** What has come of those that are no longer recent. */
  #pastBytes = 0;
  #bytes = HEDGE_BYTES_MAX;
  #worth = 1;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /**
   * For the reader. A stripe that is late once needs budget; one that is late twice is stuck and always gets help. A
   * piece gets help where its region is at fault and not the line, which k others would only make busier.
   */
  readonly hedge = (bytes: number, times: number, piece?: LatePiece): boolean => {
    if (piece && !(piece.restMs === undefined ? this.#isStuck(piece) : this.#isWorth(piece, piece.restMs)))
      return false;
    if (times === 1 && bytes > this.#bytes) return false;
    this.#bytes -= piece?.costBytes ?? bytes;
    return true;
  };

  /** Follows a request from its start to its end. */
  note(record: RequestRecord): void {
    if (record.kind !== "region") return;
    if (!this.#recent.has(record)) this.#recent.set(record, 0);
    const sinceMs = this.#clock.now() - BESIDE_MS_MAX;
    for (const one of this.#recent.keys()) {
      if (one.endMs === undefined || one.endMs >= sinceMs) continue;
      this.#recent.delete(one);
      this.#pastBytes += one.receivedBytes ?? 0;
    }
  }

  #receivedBytes(): number {
    return [...this.#recent.keys()].reduce((sum, { receivedBytes = 0 }) => sum + receivedBytes, this.#pastBytes);
  }

  /**
   * Whether a piece is silent because of its region. On a busy line its first byte waits for those of others, and in
   * the browser it waits for a connection to a region that sends.
   */
  #isStuck({ record, lateMs }: LatePiece): boolean {
    const nowMs = this.#clock.now();
    const silentMs = Math.max(lateMs, BESIDE_SHARE * (nowMs - record.startMs));
    const heard = [...this.#recent.keys()].filter(({ heardMs }) => heardMs && heardMs > nowMs - silentMs);
    const own = heard.filter(({ source }) => source === record.source);
    const isSending = own.some(({ endMs }) => endMs === undefined);
    const bytes = this.#receivedBytes();
    const sinceBytes = (!isSending && this.#recent.get(record)) || bytes;
    this.#recent.set(record, sinceBytes);
    // Who came later and is served has overtaken it.
    if (isSending) return own.some(({ startMs, endMs }) => endMs && startMs > record.startMs);
    const flowing = heard.filter(({ endMs }) => endMs === undefined).length;
    return nowMs - record.startMs > BESIDE_MS_MAX || bytes - sinceBytes >= flowing * TURN_BYTES;
  }

  /** Whether k others would be there long before a piece that flows: on a busy line they share it with all others. */
  #isWorth({ record, othersMs, costBytes }: LatePiece, restMs: number): boolean {
    const nowMs = this.#clock.now();
    const k = costBytes / record.bytes;
    let [beside, others, bytes, ms] = [0, 0, 0, 0];
    for (const { source, startMs, endMs = nowMs, receivedBytes } of this.#recent.keys()) {
      const besideMs = endMs - Math.max(startMs, record.startMs);
      if (besideMs < BESIDE_SHARE * (nowMs - record.startMs)) continue;
      beside++;
      // Those of its own region may be as slow for the same reason.
      if (!receivedBytes || source === record.source) continue;
      others++;
      bytes += receivedBytes;
      ms += endMs - startMs;
    }
    // What k others are believed to take is measured one at a time: side by side they share the line, too.
    if (others === 0) return restMs / Math.max(1, beside) > k * othersMs;
    return restMs > 2 * (othersMs + ((record.bytes * ms) / bytes) * (1 + k / others));
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
