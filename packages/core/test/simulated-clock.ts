import type { Clock } from "../src/ports.ts";

/** A clock that moves only when a test says so, and knows every timer that is still set. */
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

  /** Resolves after `ms` on this clock; rejects with the signal's reason once that aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.after(ms, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason as Error);
      });
    });
  }

  /** Lets `ms` pass, firing what falls due in order, with all promises settled before and after. */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms;
    await settle();
    while (this.#fireNext(end)) await settle();
    this.#now = end;
  }

  /** Lets time pass until `promise` is settled, and gives its result. Throws when no timer is left that could do it. */
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
    const next = this.#timers.toSorted((a, b) => a.at - b.at)[0];
    if (!next || next.at > until) return false;
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
