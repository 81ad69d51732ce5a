/** Time limits for what may hang. */
import { AgaroseError, type Clock } from "@agarose/core";

/** What `promise` settles to, or `undefined` when it takes longer than `ms` or rejects. */
export function orUndefined<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | undefined> {
  return withTimeout(promise, ms, clock, "").catch(() => undefined);
}

/** What `promise` settles to; rejects with READ_TIMEOUT when it takes longer than `ms`. */
export function withTimeout<T>(promise: Promise<T>, ms: number, clock: Clock, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () =>
      reject(new AgaroseError("READ_TIMEOUT", `${what} took longer than ${ms} ms`, { ms })),
    );
    promise.then(resolve, reject).finally(cancel);
  });
}
