/** Puts into the Cache API that have not ended. A put holds its bytes until then, and reads may be faster than puts. */
import type { Clock } from "@agarose/core";

/** The most bytes of all; a later read puts what exceeds them. */
const BYTES_MAX = 16 * 1024 * 1024;
/** A put that takes longer died with its invocation, whose cancellation runs none of its code. */
const PUT_MS_MAX = 30_000;

interface PutInFlight {
  readonly done: Promise<void>;
  readonly bytes: number;
  readonly sinceMs: number;
}

/** The puts of one isolate. */
export class PutsInFlight {
  readonly #clock: Pick<Clock, "now">;
  readonly #puts = new Map<string, PutInFlight>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns whether so many bytes more may be put now. Forgets puts that died with their invocation. */
  hasRoom(bytes: number): boolean {
    let sum = bytes;
    for (const [name, put] of this.#puts) {
      if (this.#clock.now() - put.sinceMs > PUT_MS_MAX) this.#puts.delete(name);
      else sum += put.bytes;
    }
    return sum <= BYTES_MAX;
  }

  /** Counts the put `done`, which never rejects, until it ends, and resolves then. */
  async add(name: string, bytes: number, done: Promise<void>): Promise<void> {
    const put = { done, bytes, sinceMs: this.#clock.now() };
    this.#puts.set(name, put);
    await done;
    if (this.#puts.get(name) === put) this.#puts.delete(name);
  }

  /** The put of `name`, if it has not ended. */
  get(name: string): Promise<void> | undefined {
    return this.#puts.get(name)?.done;
  }
}
