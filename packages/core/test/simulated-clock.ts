import type { Clock } from "../src/ports.ts";

/** A clock that moves only when a test says so. It counts the timers that are set. */
export class SimulatedClock implements Clock {
  #now = 0;
  #timers: { readonly at: number; readonly callback: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Timers that are set and neither fired nor cancelled. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  /** Resolves after `ms` on this clock. Rejects with the signal's reason when that aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.after(ms, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason as Error);
      });
    });
  }

  /** Lets `ms` pass and fires due timers in order. All promises settle before and after each. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    while (this.#fireNext(end)) await settle();
    this.#now = end;
  }

  /** Lets time pass until `promise` settles, and returns its result. Throws if no timer is left before. */
  async run<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    promise.then(
      () => (settled = true),
      () => (settled = true),
    );
    for (;;) {
      await settle();
      if (settled) return promise;
      if (!this.#fireNext(Number.POSITIVE_INFINITY)) throw new Error(`stuck at ${this.#now} ms: no timer is left`);
    }
  }

  #fireNext(until: number): boolean {
    if (this.#timers.length === 0) return false;
    const next = this.#timers.reduce((first, timer) => (timer.at < first.at ? timer : first));
    if (next.at > until) return false;
    this.#timers = this.#timers.filter((timer) => timer !== next);
    this.#now = Math.max(this.#now, next.at);
    next.callback();
    return true;
  }
}

/** Resolves when all promise callbacks that can run have run. */
export function settle(): Promise<void> {
  const { setImmediate } = globalThis as unknown as { setImmediate: (callback: () => void) => void };
  return new Promise((resolve) => setImmediate(resolve));
}
