/** Time limits and waits. */
import { AgaroseError, type Clock } from "@agarose/core";
import { orUndefined, within } from "@agarose/core/async";

/** Settles as `promise` does. Rejects with READ_TIMEOUT, naming `what`, after `ms` milliseconds. */
export function withTimeout<T>(promise: Promise<T>, ms: number, clock: Clock, what: string): Promise<T> {
  return within(
    promise,
    ms,
    clock,
    () => new AgaroseError("READ_TIMEOUT", `${what} took longer than ${ms} ms`, { ms }),
  );
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
