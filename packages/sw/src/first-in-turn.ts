/**
 * Tries alternatives in turn: the next one starts when one fails or takes longer than it should, the first to succeed
 * wins, and the others are aborted.
 */
import { AgaroseError, toAgaroseError, type Clock } from "@agarose/core";

export interface Attempt<T> {
  readonly name: string;
  /** The next attempt starts beside this one after so long. */
  readonly patienceMs: number;
  start(signal: AbortSignal): Promise<T>;
  /** Told when another one won after this one's patience had run out. */
  onLate?(): void;
}

export interface TurnOptions<T> {
  readonly clock: Clock;
  /** Ends all attempts; the winner goes on living by it. */
  readonly signal: AbortSignal;
  /** Whether a failure answers for all: asking others would not change it. */
  readonly isFinal: (error: AgaroseError) => boolean;
  /** Gets rid of a success that came too late. */
  readonly discard: (value: T) => void;
}

/** The first success. Rejects with a final failure, with ABORTED, or with the list of failures when all have failed. */
export function firstInTurn<T>(attempts: readonly Attempt<T>[], options: TurnOptions<T>): Promise<T> {
  return new Turns(attempts, options).run();
}

/** All attempts failed. */
export class AllFailed extends Error {
  readonly failures: readonly { name: string; error: AgaroseError }[];

  constructor(failures: readonly { name: string; error: AgaroseError }[]) {
    super(failures.map(({ name, error }) => `${name}: ${error.message}`).join("; "));
    this.failures = failures;
  }
}

class Turns<T> {
  readonly #attempts: readonly Attempt<T>[];
  readonly #options: TurnOptions<T>;
  readonly #running = new Map<Attempt<T>, { abort: AbortController; late: boolean }>();
  readonly #failures: { name: string; error: AgaroseError }[] = [];
  readonly #result = Promise.withResolvers<T>();
  #settled = false;
  #started = 0;

  constructor(attempts: readonly Attempt<T>[], options: TurnOptions<T>) {
    this.#attempts = attempts;
    this.#options = options;
  }

  async run(): Promise<T> {
    const { signal } = this.#options;
    const onAbort = (): void => this.#settle(() => this.#result.reject(toAgaroseError(signal.reason, "ABORTED")));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    try {
      this.#startNext();
      return await this.#result.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  #startNext(): void {
    const attempt = this.#attempts[this.#started];
    if (this.#settled) return;
    if (!attempt) {
      if (this.#running.size === 0) this.#settle(() => this.#result.reject(new AllFailed(this.#failures)));
      return;
    }
    this.#started++;
    const state = { abort: new AbortController(), late: false };
    this.#running.set(attempt, state);
    const cancelTimer = this.#options.clock.after(attempt.patienceMs, () => {
      state.late = true;
      this.#startNext();
    });
    const own = AbortSignal.any([this.#options.signal, state.abort.signal]);
    attempt
      .start(own)
      .then(
        (value) => this.#won(attempt, value),
        (error: unknown) => this.#lost(attempt, toAgaroseError(error, "SOURCE_FAILED")),
      )
      .finally(cancelTimer);
  }

  #won(attempt: Attempt<T>, value: T): void {
    if (this.#settled) {
      this.#options.discard(value);
      return;
    }
    this.#running.delete(attempt);
    this.#settle(() => this.#result.resolve(value));
  }

  #lost(attempt: Attempt<T>, error: AgaroseError): void {
    if (!this.#running.delete(attempt)) return;
    this.#failures.push({ name: attempt.name, error });
    if (this.#options.isFinal(error)) this.#settle(() => this.#result.reject(error));
    else this.#startNext();
  }

  #settle(how: () => void): void {
    if (this.#settled) return;
    this.#settled = true;
    how();
    for (const [attempt, { abort, late }] of this.#running) {
      if (late && !this.#options.signal.aborted) attempt.onLate?.();
      this.#running.delete(attempt);
      abort.abort();
    }
  }
}
