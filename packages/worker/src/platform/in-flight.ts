/**
 * What other invocations of this isolate are in the middle of, to be waited for, but not for ever: an invocation may be killed,
 * and what it had begun then never ends.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "./async.ts";

const PATIENCE_MS = 5_000;

export class UnderWay {
  readonly #clock: Clock;
  readonly #tasks = new Set<Promise<unknown>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts `task` in until it ends; returns it. */
  add<T>(task: Promise<T>): Promise<T> {
    this.#tasks.add(task);
    const end = (): void => void this.#tasks.delete(task);
    task.then(end, end);
    return task;
  }

  /** Resolves when all that is under way now has ended, in five seconds at most. */
  async ended(): Promise<void> {
    const tasks = [...this.#tasks];
    await orUndefined(Promise.allSettled(tasks), PATIENCE_MS, this.#clock);
    // What has not ended by now died.
    for (const task of tasks) this.#tasks.delete(task);
  }
}
