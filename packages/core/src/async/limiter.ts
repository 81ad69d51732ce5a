/** Bounded concurrency: a queue for a number of places, and a pool over items. */

/** A task that waits for a place. */
export interface Waiting<T> {
  /** The caller's description of it. */
  readonly owner: T;
  readonly start: () => void;
}

/** Runs at most so many tasks at a time. The others wait, and start in the order in which they came. */
export class Limiter<T = unknown> {
  /** Tasks that have ended, with or without success. */
  finished = 0;
  readonly #max: number;
  readonly #waiting: Waiting<T>[] = [];
  #running = 0;

  constructor(max: number) {
    this.#max = max;
  }

  get load(): number {
    return this.#running + this.#waiting.length;
  }

  /**
   * Runs `task` when a place is free. Rejects with the signal's reason if that aborts before.
   *
   * @param owner what `next` knows the task by.
   */
  async run<R>(task: () => Promise<R>, signal?: AbortSignal, owner?: T): Promise<R> {
    signal?.throwIfAborted();
    if (this.#running < this.#max) this.#running++;
    else await this.#place(owner, signal);
    try {
      return await task();
    } finally {
      this.finished++;
      // The place passes on to one of the queue. A newcomer could take one that was freed first.
      if (this.#waiting.length > 0) this.#waiting.splice(this.next(this.#waiting), 1)[0]!.start();
      else this.#running--;
    }
  }

  /** Returns the index of the task that starts next. */
  protected next(_waiting: readonly Waiting<T>[]): number {
    return 0;
  }

  #place(owner: T | undefined, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const entry = { owner: owner as T, start: resolve };
      this.#waiting.push(entry);
      signal?.addEventListener("abort", () => {
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        reject(signal.reason as Error);
      });
    });
  }
}

/**
 * Runs `task` for every item, at most `count` at a time, and starts them in order. Rejects as the first task that does.
 */
export async function inParallel<T>(
  count: number,
  items: readonly T[],
  task: (item: T) => Promise<unknown>,
): Promise<void> {
  const iterator = items.values();
  const work = async (): Promise<void> => {
    for (const item of iterator) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, work));
}
