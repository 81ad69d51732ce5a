/** A clock that moves only while a test waits on it, from timer to timer. */
import type { Clock } from "@agarose/core";

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

export class VirtualClock implements Clock {
  #nowMs = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return this.#nowMs;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + ms, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** Resolves on this clock after `ms`, or rejects with the signal's reason. */
  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) reject(signal.reason);
      const cancel = this.after(ms, resolve);
      signal?.addEventListener("abort", () => {
        cancel();
        reject(signal.reason);
      });
    });
  }

  /** Lets time pass until `promise` is settled. Fails when it waits for something that no timer will bring. */
  async settle<T>(promise: Promise<T>): Promise<T> {
    let settled = false;
    const watch = (): void => void (settled = true);
    promise.then(watch, watch);
    while (true) {
      await idle();
      if (settled) return promise;
      if (!this.#step()) throw new Error(`nothing happens any more at ${this.#nowMs} ms`);
    }
  }

  /** Lets `ms` pass, firing what is due. */
  async pass(ms: number): Promise<void> {
    await this.settle(this.sleep(ms));
    await idle();
  }

  #step(): boolean {
    const [next] = [...this.#timers].toSorted((a, b) => a.atMs - b.atMs);
    if (!next) return false;
    this.#timers.delete(next);
    this.#nowMs = Math.max(this.#nowMs, next.atMs);
    next.callback();
    return true;
  }
}

/** Until everything that is ready to run has run. */
async function idle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
