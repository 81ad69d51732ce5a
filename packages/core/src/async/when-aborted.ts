/**
 * Calls `leave` once `signal` aborts, at once if it has. Returns a function after which it is not called any more; a
 * signal of a whole read outlives what waits for a part of it.
 */
export function whenAborted(signal: AbortSignal | undefined, leave: () => void): () => void {
  if (signal?.aborted) leave();
  signal?.addEventListener("abort", leave);
  return () => signal?.removeEventListener("abort", leave);
}
