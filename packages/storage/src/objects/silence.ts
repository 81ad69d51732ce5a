/** Ends a read when its region falls silent, whatever the connection says. */
import { AgaroseError, type Clock } from "@agarose/core";

/** Longer than any region takes that is going to answer. */
const SILENT_MS_MAX = 30_000;

/** Watches one request: each step may take 30 seconds by default. */
export class SilenceLimit {
  /** Aborts with the caller's signal, and when the region is silent for too long. */
  readonly signal: AbortSignal;
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #stop = new AbortController();
  #isOver = false;

  constructor(clock: Clock, signal: AbortSignal, limitMs = SILENT_MS_MAX) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.signal = AbortSignal.any([signal, this.#stop.signal]);
  }

  /** Whether the region was silent for too long. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Settles as `step` does, or rejects with SOURCE_FAILED when that takes too long or the caller aborts. */
  async limit<T>(step: Promise<T>): Promise<T> {
    const over = Promise.withResolvers<never>();
    const onAbort = (): void => over.reject(this.signal.reason);
    this.signal.addEventListener("abort", onAbort, { once: true });
    const cancel = this.#clock.after(this.#limitMs, () => {
      this.#isOver = true;
      this.#stop.abort(new AgaroseError("SOURCE_FAILED", `the region sent nothing for ${this.#limitMs} ms`));
    });
    try {
      return await Promise.race([step, over.promise]);
    } finally {
      cancel();
      this.signal.removeEventListener("abort", onAbort);
    }
  }

  /** The parts of a body, each of which may take as long. */
  async *parts(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
    const reader = body?.getReader();
    if (!reader) return;
    try {
      for (;;) {
        const { done, value } = await this.limit(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      await reader.cancel().catch(() => {});
    }
  }
}
