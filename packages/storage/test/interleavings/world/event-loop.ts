/**
 * Virtual time. Events run one by one in order of their time, and all promises settle between two of them.
 */

interface Event {
  readonly atMs: number;
  readonly order: number;
  readonly run: () => void;
}

const YEAR_MS = 366 * 86_400_000;

export class EventLoop {
  #nowMs = 0;
  #order = 0;
  #events: Event[] = [];

  /** Milliseconds since the start. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `run` after `ms` milliseconds. The returned function cancels it. */
  after(ms: number, run: () => void): () => void {
    const event = { atMs: this.#nowMs + Math.max(0, ms), order: this.#order++, run };
    let at = this.#events.length;
    while (at > 0 && isBefore(event, this.#events[at - 1]!)) at--;
    this.#events.splice(at, 0, event);
    return () => {
      const index = this.#events.indexOf(event);
      if (index >= 0) this.#events.splice(index, 1);
    };
  }

  /**
   * Runs events until `isDone`, or until none is left or a year has passed, in which a writer that hangs still renews
   * its claim. Returns whether it is done.
   */
  async run(isDone: () => boolean): Promise<boolean> {
    await settle();
    while (!isDone()) {
      const event = this.#events.shift();
      if (!event || event.atMs > YEAR_MS) return false;
      this.#nowMs = event.atMs;
      event.run();
      await settle();
    }
    return true;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atMs - b.atMs < 0 || (a.atMs === b.atMs && a.order < b.order);
}

/** Resolves when all callbacks of promises that can run have run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
