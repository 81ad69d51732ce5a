/** When a process that serves is to end: a signal, or a call of `stop`. */

/** A terminal's Ctrl-C may arrive twice, from the terminal and through npm; only a later one counts as a second one. */
const SECOND_SIGNAL_MS = 1000;

interface StopSignal {
  /** Resolves at the first SIGINT, SIGTERM, SIGHUP or call of `stop`; a later signal ends the process at once. */
  readonly asked: Promise<void>;
  stop(): void;
  /** Removes all other signal handlers: Miniflare and Vite bring some that exit before anything is cleaned up. */
  own(): void;
}

/** Starts to listen for the signals. */
export function stopSignal(): StopSignal {
  const { promise, resolve } = Promise.withResolvers<void>();
  let firstMs: number | undefined;
  const onSignal = (): void => {
    firstMs ??= performance.now();
    if (performance.now() - firstMs > SECOND_SIGNAL_MS) process.exit(130);
    resolve();
  };
  const own = (): void => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
      process.removeAllListeners(signal).on(signal, onSignal);
  };
  own();
  return { asked: promise, stop: resolve, own };
}
