/**
 * Turns among concurrent reads: so many requests at a time go to one source, and of those that wait, the next one is of a
 * read that was served little. A page's hundred images then come one after the other, beside a long download too.
 */

/**
 * Requests to one source under way at a time. Six connections of HTTP/1.1 have three more waiting behind each; the streams
 * of HTTP/2 are not held back by more than that.
 */
export const REQUESTS_PER_SOURCE = 24;
/**
 * Reads take turns by so many requests, more than a small object takes: by single ones, a hundred images would all be complete
 * at the end only. A read of low priority is one turn behind, one of high priority one ahead.
 */
export const TURN_REQUESTS = 16;

export type Priority = "high" | "low" | "auto";

/** One read, to all queues that it stands in. */
export class Turn {
  readonly priority: Priority;
  /** Requests served, and those that its priority adds. */
  served: number;

  /** @param header what the request's `priority` says (RFC 9218): its urgency from 0 to 7, 3 where that is left out. */
  constructor(header: string | null) {
    const urgency = Number(/(?:^|[\s,])u=([0-7])/.exec(header ?? "")?.[1] ?? 3);
    const behind = Math.sign(urgency - 3);
    this.priority = (["high", "auto", "low"] as const)[behind + 1]!;
    this.served = TURN_REQUESTS * behind;
  }
}

/** The requests to one source. */
export class FairQueue {
  /** Requests that are over, however they ended. */
  finished = 0;
  #running = 0;
  readonly #waiting: { readonly turn: Turn; readonly start: () => void }[] = [];

  /** Requests under way and waiting. */
  get load(): number {
    return this.#running + this.#waiting.length;
  }

  /** Calls `work` when it is its turn; rejects with the signal's reason when that aborts before. */
  async run<T>(turn: Turn, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    if (this.#running < REQUESTS_PER_SOURCE) this.#running++;
    else await this.#start(turn, signal);
    turn.served++;
    try {
      return await work();
    } finally {
      this.finished++;
      // Who is next takes over the place of this one.
      if (this.#waiting.length > 0) this.#next().start();
      else this.#running--;
    }
  }

  #start(turn: Turn, signal: AbortSignal): Promise<void> {
    return new Promise((start, reject) => {
      const entry = { turn, start };
      this.#waiting.push(entry);
      signal.addEventListener("abort", () => {
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason);
      });
    });
  }

  /**
   * The first of those that have had the fewest turns; now and then whoever waits longest, so that new reads that come without
   * end do not keep a long one waiting for ever.
   */
  #next(): { readonly start: () => void } {
    const turns = this.#waiting.map(({ turn }) => Math.floor(turn.served / TURN_REQUESTS));
    const next = this.finished % TURN_REQUESTS === 0 ? 0 : turns.indexOf(Math.min(...turns));
    return this.#waiting.splice(next, 1)[0]!;
  }
}
