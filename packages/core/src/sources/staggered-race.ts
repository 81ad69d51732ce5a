/**
 * A staggered race, as of Happy Eyeballs (RFC 8305, section 5). The next attempt starts when one fails or takes longer
 * than expected. The first success wins, and the others are aborted.
 */
import { whenAborted } from "../async/when-aborted.ts";
import { toAgaroseError, type AgaroseError } from "../errors.ts";
import type { Clock } from "../ports.ts";
import { UNWANTED } from "./source.ts";

/** One way to get a value. */
export interface Attempt<T> {
  readonly name: string;
  /** The next attempt starts beside this one after this time. */
  readonly patienceMs: number;
  /** Milliseconds to wait longer, asked for when the patience is over. Default: none. */
  readonly moreMs?: (() => number) | undefined;
  start(signal: AbortSignal): Promise<T>;
  /** Called if another attempt wins after this one's `patienceMs`. */
  onLate?(): void;
}

/** An attempt that failed, and why. */
export interface FailedAttempt {
  readonly name: string;
  readonly error: AgaroseError;
}

/** How a race runs and ends. */
export interface RaceOptions<T> {
  readonly clock: Clock;
  /** Aborts all attempts, and the winner after the race. */
  readonly signal: AbortSignal;
  /** The reaction to a failure: start the next attempt, start all at once, or none because the failure is final. */
  readonly afterFailure: (error: AgaroseError, failures: readonly FailedAttempt[]) => "next" | "all" | "none";
  /** Makes the error to reject with when all have failed. */
  readonly allFailed: (failures: readonly FailedAttempt[]) => AgaroseError;
  /** Disposes of a success that came too late. */
  readonly discard?: (value: T) => void;
}

/** Resolves to the first success. Rejects with a final failure, with ABORTED, or with the error of `allFailed`. */
export function staggeredRace<T>(attempts: readonly Attempt<T>[], options: RaceOptions<T>): Promise<T> {
  const { clock, signal, afterFailure, allFailed, discard } = options;
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const running = new Map<Attempt<T>, { abort: AbortController; cancelTimer: () => void; late: boolean }>();
  const failures: FailedAttempt[] = [];
  let started = 0;
  let isOver = false;
  const detach = whenAborted(signal, () => fail(toAgaroseError(signal.reason, "ABORTED")));
  promise.then(detach, detach);
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
    const check = (): void => {
      const ms = attempt.moreMs?.();
      if (ms && ms > 0) return void (state.cancelTimer = clock.after(ms, check));
      state.late = true;
      startNext();
    };
    const state = { abort, cancelTimer: clock.after(attempt.patienceMs, check), late: false };
    running.set(attempt, state);
    attempt.start(AbortSignal.any([signal, abort.signal])).then(
      (value) => {
        if (isOver) return discard?.(value);
        resolve(value);
        state.cancelTimer();
        running.delete(attempt);
        end();
      },
      (cause: unknown) => {
        if (!running.delete(attempt)) return;
        state.cancelTimer();
        const error = toAgaroseError(cause, "SOURCE_FAILED");
        failures.push({ name: attempt.name, error });
        const then = afterFailure(error, failures);
        if (then === "none") fail(error);
        let count = then === "all" ? attempts.length - started : 1;
        // At least once: this call finds out that none is left.
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
    for (const [attempt, { abort, cancelTimer, late }] of running) {
      if (late && !signal.aborted) attempt.onLate?.();
      running.delete(attempt);
      cancelTimer();
      abort.abort(UNWANTED);
    }
  }
}
