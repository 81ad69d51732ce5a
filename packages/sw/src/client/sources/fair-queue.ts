/**
 * Shares a source among concurrent reads: a fixed number of requests run at a time, and the next one belongs to a read
 * that was served little. The hundred images of a page then complete one after the other, also beside a long download.
 */

/**
 * Requests to one source at a time. Each of the six connections of HTTP/1.1 has three more requests waiting behind it,
 * and HTTP/2 streams are not held back.
 */
export const REQUESTS_PER_SOURCE = 24;
/**
 * Reads take rounds of this many requests, which is more than a small object needs. With single requests, a hundred
 * images would all complete at the end. Low priority puts a read one round behind, high priority one round ahead.
 */
export const ROUND_REQUESTS = 16;

/** How urgent a read is among others. */
export type Priority = "high" | "low" | "auto";

/** The place of one read in every queue. */
export class Slot {
  readonly priority: Priority;
  /** Requests served, plus those that the priority adds. */
  served: number;

  /** @param header the `priority` header of the request (RFC 9218): urgency 0 to 7, 3 by default. */
  constructor(header: string | null) {
    const urgency = Number(/(?:^|[\s,])u=([0-7])/.exec(header ?? "")?.[1] ?? 3);
    const behind = Math.sign(urgency - 3);
    this.priority = (["high", "auto", "low"] as const)[behind + 1]!;
    this.served = ROUND_REQUESTS * behind;
  }
}

/** The requests to one source. */
export class FairQueue {
  /** Requests that have ended, with or without success. */
  finished = 0;
  #running = 0;
  readonly #waiting: { readonly slot: Slot; readonly start: () => void }[] = [];

  /** Requests that run or wait. */
  get load(): number {
    return this.#running + this.#waiting.length;
  }

  /** Calls `work` when its place in the queue comes. Rejects with the signal's reason when it aborts before. */
  async run<T>(slot: Slot, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#running < REQUESTS_PER_SOURCE) this.#running++;
    else await this.#start(slot, signal);
    slot.served++;
    try {
      return await work();
    } finally {
      this.finished++;
      // The next request takes the place of this one.
      if (this.#waiting.length > 0) this.#next().start();
      else this.#running--;
    }
  }

  #start(slot: Slot, signal: AbortSignal): Promise<void> {
    return new Promise((start, reject) => {
      const entry = { slot, start };
      this.#waiting.push(entry);
      signal.addEventListener("abort", () => {
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason as Error);
      });
    });
  }

  /**
   * The first request of the reads with the fewest rounds. Every sixteenth time it is the one that waits longest: a
   * steady flow of new reads must not starve a long one.
   */
  #next(): { readonly start: () => void } {
    const rounds = this.#waiting.map(({ slot }) => Math.floor(slot.served / ROUND_REQUESTS));
    const next = this.finished % ROUND_REQUESTS === 0 ? 0 : rounds.indexOf(Math.min(...rounds));
    return this.#waiting.splice(next, 1)[0]!;
  }
}
