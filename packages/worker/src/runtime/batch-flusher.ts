/**
 * Hands on what an isolate has gathered, in batches beside the requests (`waitUntil`), so that no read waits for it.
 *
 * Cloudflare ends `waitUntil` 30 s after the answer, and may end it earlier. A flush that is overdue therefore counts
 * as dead, and the next request plans another one.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import { sleep } from "./async.ts";

/** The `waitUntil` of an invocation. */
export type WaitUntil = (promise: Promise<unknown>) => void;

const FLUSH_AFTER_MS = 2_000;
/** A refusing receiver is overloaded: each refusal doubles the wait, up to this, which still fits into `waitUntil`. */
export const FLUSH_AFTER_MS_MAX = 20_000;
/** A flush that is so late has died with its invocation. */
const OVERDUE_MS = 2_000;
const PATIENCE_MS = 5_000;

/**
 * Work that other invocations of this isolate have begun. A caller may wait for it, but not forever: Cloudflare may
 * kill an invocation, and its work then never ends.
 */
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

/** Plans and runs flushes; its owner keeps the batch. */
export class BatchFlusher {
  readonly #clock: Clock;
  readonly #flush: (waitUntil: WaitUntil) => Promise<boolean>;
  readonly #inFlight: InFlight;
  #afterMs = FLUSH_AFTER_MS;
  #planned: { readonly dueMs: number } | undefined;

  /** @param flush hands on the batch; resolves to whether the receiver accepted all of it, and never rejects. */
  constructor(clock: Clock, flush: (waitUntil: WaitUntil) => Promise<boolean>) {
    this.#clock = clock;
    this.#flush = flush;
    this.#inFlight = new InFlight(clock);
  }

  /** Plans a flush in two seconds (later after refusals), unless one is planned that is still alive. */
  plan(waitUntil: WaitUntil): void {
    const now = this.#clock.now();
    if (this.#planned && now <= this.#planned.dueMs + OVERDUE_MS) return;
    const planned = { dueMs: now + this.#afterMs };
    this.#planned = planned;
    const later = async (): Promise<void> => {
      await sleep(this.#afterMs, this.#clock);
      if (this.#planned === planned) this.#planned = undefined;
      await this.#run(waitUntil);
    };
    waitUntil(later());
  }

  /** Flushes now, and waits up to five seconds for it and for flushes of other invocations. Never rejects. */
  async flush(waitUntil: WaitUntil): Promise<void> {
    const run = this.#run(waitUntil);
    // Without it, a run that takes longer would end with its invocation.
    waitUntil(run);
    await Promise.all([orUndefined(run, PATIENCE_MS, this.#clock), this.#inFlight.ended()]);
  }

  async #run(waitUntil: WaitUntil): Promise<void> {
    const isAccepted = await this.#inFlight.add(this.#flush(waitUntil));
    this.#afterMs = isAccepted ? FLUSH_AFTER_MS : Math.min(FLUSH_AFTER_MS_MAX, 2 * this.#afterMs);
  }
}
