/**
 * Request coalescing: whoever wants what is being fetched already (a follower) waits for the one that began (the
 * leader).
 */
import type { Clock } from "../ports.ts";
import { whenAborted } from "./when-aborted.ts";

/** Work under way. */
export interface Flight<T> {
  readonly work: Promise<T>;
  /** From this time on, the leader may have died with its runtime, and nobody waits for it any more. */
  readonly untilMs: number;
}

/** The work in progress by name, the oldest first. Its callers bound the size of this map. */
export class Flights<T> extends Map<string, Flight<T>> {
  readonly #clock: Pick<Clock, "now">;
  readonly #patienceMs: number;

  /** @param patienceMs how long after its start a flight counts. */
  constructor(clock: Pick<Clock, "now">, patienceMs: number) {
    super();
    this.#clock = clock;
    this.#patienceMs = patienceMs;
  }

  override get(name: string): Flight<T> | undefined {
    for (const [other, { untilMs }] of this) {
      if (untilMs > this.#clock.now()) break;
      this.delete(other);
    }
    return super.get(name);
  }

  /** Makes `work` the flight of `name` until it ends. */
  lead(name: string, work: Promise<T>): Flight<T> {
    const flight = { work, untilMs: this.#clock.now() + this.#patienceMs };
    const end = (): void => this.end(name, flight);
    this.delete(name);
    this.set(name, flight);
    work.then(end, end);
    return flight;
  }

  /** Stops others from joining `flight`. A newer one of the same name stays. */
  end(name: string, flight: Flight<T>): void {
    if (super.get(name) === flight) this.delete(name);
  }
}

/** Settles as `promise` does. Rejects with what `late` returns after `ms` milliseconds. */
export function within<T>(promise: Promise<T>, ms: number, clock: Clock, late: () => unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () => reject(late()));
    promise.then(resolve, reject).finally(cancel);
  });
}

/**
 * Resolves to what `promise` resolves to; to `undefined` if it rejects, if it takes longer than `ms` milliseconds, or
 * as soon as `signal` aborts.
 */
export function orUndefined<T>(
  promise: Promise<T>,
  ms: number,
  clock: Clock,
  signal?: AbortSignal,
): Promise<T | undefined> {
  return new Promise((resolve) => {
    const leave = (): void => resolve(undefined);
    const cancel = clock.after(ms, leave);
    const stay = whenAborted(signal, leave);
    promise.then(resolve, leave).finally(() => {
      cancel();
      stay();
    });
  });
}

/** `make`, called when first needed and again only after it has failed. */
export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** Resolves to whether `promise` fulfils. */
export function succeeds(promise: Promise<unknown>): Promise<boolean> {
  return promise.then(
    () => true,
    () => false,
  );
}
