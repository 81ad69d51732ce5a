/**
 * How long a source takes: a running mean and spread, cheap enough to keep for every source of every client.
 */

/** What is believed of a source's time to deliver one chunk. */
export interface LatencyEstimate {
  readonly meanMs: number;
  readonly sdMs: number;
  /** After so long it is late, where more is known of it than mean and spread. */
  readonly lateMs?: number;
}

/** A source nobody has measured yet: slow enough not to be preferred, near enough to be tried. */
export const LATENCY_UNKNOWN: LatencyEstimate = { meanMs: 250, sdMs: 125 };

const GAIN = 0.2;

/** `estimate` after one more measurement: exponentially weighted mean and variance. */
export function observeLatency(estimate: LatencyEstimate | undefined, ms: number): LatencyEstimate {
  if (!estimate) return { meanMs: ms, sdMs: ms / 4 };
  const error = ms - estimate.meanMs;
  const meanMs = estimate.meanMs + GAIN * error;
  const variance = (1 - GAIN) * (estimate.sdMs ** 2 + GAIN * error ** 2);
  return { meanMs, sdMs: Math.sqrt(variance) };
}

/** When a request to such a source is late enough that another one should be asked: `lateMs`, or mean + 3 sd; at least 20 ms. */
export function hedgeAfterMs({ meanMs, sdMs, lateMs }: LatencyEstimate): number {
  return Math.max(20, lateMs ?? meanMs + 3 * sdMs);
}
