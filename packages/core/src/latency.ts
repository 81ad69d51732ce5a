/** How long a source takes: a running mean and standard deviation, cheap enough for every source of every client. */

/** The estimated time of a source to deliver one chunk. */
export interface LatencyEstimate {
  readonly meanMs: number;
  /** Standard deviation. */
  readonly sdMs: number;
  /** After this time a request is late. Default: mean + 3 standard deviations. */
  readonly lateMs?: number;
}

/** The estimate of a source without a measurement: slow enough not to be preferred, fast enough to be tried. */
export const LATENCY_UNKNOWN: LatencyEstimate = { meanMs: 250, sdMs: 125 };

/** Weight of the newest measurement. */
const GAIN = 0.2;

/** Returns `estimate` after one more measurement of `ms`: exponentially weighted mean and variance. */
export function observeLatency(estimate: LatencyEstimate | undefined, ms: number): LatencyEstimate {
  if (!estimate) return { meanMs: ms, sdMs: ms / 4 };
  const error = ms - estimate.meanMs;
  const meanMs = estimate.meanMs + GAIN * error;
  const variance = (1 - GAIN) * (estimate.sdMs ** 2 + GAIN * error ** 2);
  return { meanMs, sdMs: Math.sqrt(variance) };
}

/** Returns after how many milliseconds a request is late: `lateMs`, or mean + 3 standard deviations; at least 20. */
export function hedgeAfterMs({ meanMs, sdMs, lateMs }: LatencyEstimate): number {
  return Math.max(20, lateMs ?? meanMs + 3 * sdMs);
}
