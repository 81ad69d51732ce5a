/**
 * Tries alternatives in turn: the next one starts when one fails or takes longer than it should, the first to succeed
 * wins, and the others are aborted.
 */
import { toAgaroseError, type AgaroseError } from "../errors.ts";
import type { Clock } from "../ports.ts";

export interface Attempt<T> {
  readonly name: string;
  /** The next attempt starts beside this one after so long. */
  readonly patienceMs: number;
  start(signal: AbortSignal): Promise<T>;
  /** Told when another one won after this one's patience had run out. */
  onLate?(): void;
}

export interface FailedAttempt {
  readonly name: string;
  readonly error: AgaroseError;
}

export interface RaceOptions<T> {
  readonly clock: Clock;
  /** Ends all attempts; the winner goes on living by it. */
  readonly signal: AbortSignal;
  /**
   * What the latest failure means for the others: the next one is tried, all of them are at once, or none, because it answers
   * for all.
   */
  readonly afterFailure: (error: AgaroseError, failures: readonly FailedAttempt[]) => "next" | "all" | "none";
  /** What to reject with when all have failed. */
  readonly allFailed: (failures: readonly FailedAttempt[]) => AgaroseError;
  /** Gets rid of a success that came too late. */
  readonly discard?: (value: T) => void;
}

/** The first success. Rejects with a failure that answers for all, with ABORTED, or with what `allFailed` makes. */
export function staggeredRace<T>(attempts: readonly Attempt<T>[], options: RaceOptions<T>): Promise<T> {
  const { clock, signal, afterFailure, allFailed, discard } = options;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const running = new Map<Attempt<T>, { abort: AbortController; cancelTimer: () => void; late: boolean }>();
  const failures: FailedAttempt[] = [];
  let started = 0;
  let isOver = false;
  const onAbort = (): void => fail(toAgaroseError(signal.reason, "ABORTED"));
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  startNext();
  return promise;

  function startNext(): void {
    const attempt = attempts[started];
    if (isOver) return;
    if (!attempt) {
      if (running.size === 0) fail(allFailed(failures));
      return;
    }
    started++;
    const abort = new AbortController();
    const cancelTimer = clock.after(attempt.patienceMs, () => {
      state.late = true;
      startNext();
    });
    const state = { abort, cancelTimer, late: false };
    running.set(attempt, state);
    attempt.start(AbortSignal.any([signal, abort.signal])).then(
      (value) => {
        if (isOver) return discard?.(value);
        resolve(value);
        cancelTimer();
        running.delete(attempt);
        end();
      },
      (cause: unknown) => {
        if (!running.delete(attempt)) return;
        cancelTimer();
        const error = toAgaroseError(cause, "SOURCE_FAILED");
        failures.push({ name: attempt.name, error });
        const then = afterFailure(error, failures);
        if (then === "none") fail(error);
        let count = then === "all" ? attempts.length - started : 1;
        // At least once: that is how it is known that none is left.
        do startNext();
        while (--count > 0);
      },
    );
  }

  function fail(error: AgaroseError): void {
    reject(error);
    end();
  }

  function end(): void {
    isOver = true;
    signal.removeEventListener("abort", onAbort);
    for (const [attempt, { abort, cancelTimer, late }] of running) {
      if (late && !signal.aborted) attempt.onLate?.();
      running.delete(attempt);
      cancelTimer();
      abort.abort();
    }
  }
}
