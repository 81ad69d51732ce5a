/** Time limits, waits and bounded concurrency. */
import { AgaroseError, type Clock } from "@agarose/core";

/** Resolves to what `promise` settles to, or to `undefined` if it rejects or takes longer than `ms` milliseconds. */
export function orUndefined<T>(promise: Promise<T>, ms: number, clock: Clock): Promise<T | undefined> {
  return withTimeout(promise, ms, clock, "").catch(() => undefined);
}

/** Settles as `promise` does. Rejects with READ_TIMEOUT, naming `what`, after `ms` milliseconds. */
export function withTimeout<T>(promise: Promise<T>, ms: number, clock: Clock, what: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(ms, () =>
      reject(new AgaroseError("READ_TIMEOUT", `${what} took longer than ${ms} ms`, { ms })),
    );
    promise.then(resolve, reject).finally(cancel);
  });
}

/**
 * Resolves to the milliseconds that `ask` took, or to `Infinity` when it resolves to false, rejects or takes longer
 * than `timeoutMs`; its signal is aborted then.
 */
export async function timedMs(
  ask: (signal: AbortSignal) => Promise<boolean>,
  timeoutMs: number,
  clock: Clock,
): Promise<number> {
  const abort = new AbortController();
  const startMs = clock.now();
  const isGood = await orUndefined(ask(abort.signal), timeoutMs, clock);
  if (isGood) return clock.now() - startMs;
  abort.abort();
  return Number.POSITIVE_INFINITY;
}

/** Resolves after `ms` milliseconds. */
export function sleep(ms: number, clock: Clock): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/**
 * Runs `task` for every item, at most `count` at a time, and starts them in order. Rejects as the first task that does.
 */
export async function inParallel<T>(
  count: number,
  items: readonly T[],
  task: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items.values();
  const worker = async (): Promise<void> => {
    for (const item of iterator) await task(item);
  };
  await Promise.all(Array.from({ length: Math.min(count, items.length) }, worker));
}
