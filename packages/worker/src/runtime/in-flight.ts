/**
 * Work that other invocations of this isolate have begun. A caller may wait for it, but not forever: Cloudflare may
 * kill an invocation, and its work then never ends.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";

const PATIENCE_MS = 5_000;

/** The tasks of this isolate that have not ended. */
export class InFlight {
  readonly #clock: Clock;
  readonly #tasks = new Set<Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts `task` until it ends; returns it. */
  add<T>(task: Promise<T>): Promise<T> {
    this.#tasks.add(task);
    const end = (): void => void this.#tasks.delete(task);
    task.then(end, end);
    return task;
  }

  /** Resolves when every task that is in flight now has ended, after five seconds at most. */
  async ended(): Promise<void> {
    const tasks = [...this.#tasks];
    await orUndefined(Promise.allSettled(tasks), PATIENCE_MS, this.#clock);
    // A task that has not ended by now died with its invocation.
    for (const task of tasks) this.#tasks.delete(task);
  }
}
