/**
 * What a PoP believes of its regions: how long one chunk takes, and whether a region answers at all.
 *
 * Probes of this PoP decide what is down; latencies come from probes, from its own reads and from what clients report.
 */
import { LATENCY_UNKNOWN, observeLatency, type LatencyEstimate } from "@agarose/core";
import type { RegionEstimate } from "./configuration.ts";

/** One measurement of the time a region took to deliver a chunk. */
export interface RegionSample {
  readonly region: string;
  readonly ms: number;
}

/** The probes of one region in one period: milliseconds, or `Infinity` for one without a usable answer. */
export interface RegionProbe {
  readonly region: string;
  readonly ms: readonly number[];
}

/** An estimate and the run of equal probe results behind it. */
export interface RegionState extends RegionEstimate {
  /** How many probes in a row succeeded (positive) or failed (negative). */
  readonly streak: number;
}

/** As many failed probes in a row make a region down: one period of them. */
export const DOWN_AFTER = 3;
/** As many good probes in a row bring it back: two periods, so that a flapping region stays out. */
export const UP_AFTER = 6;

/** The state of one region after a period in which it was probed and `samples` were measured by reads. */
export function mergeRegion(
  before: RegionState | undefined,
  probe: RegionProbe,
  samples: readonly number[],
): RegionState {
  let streak = before?.streak ?? 0;
  let down = before?.down ?? false;
  for (const ms of probe.ms) {
    streak = Number.isFinite(ms) ? Math.max(1, streak + 1) : Math.min(-1, streak - 1);
    if (streak <= -DOWN_AFTER) down = true;
    if (streak >= UP_AFTER) down = false;
  }
  let estimate: LatencyEstimate | undefined = before?.meanMs === undefined ? undefined : before;
  for (const ms of [...probe.ms.filter(Number.isFinite), ...quartiles(samples)])
    estimate = observeLatency(estimate, ms);
  const { meanMs, sdMs } = estimate ?? LATENCY_UNKNOWN;
  return { name: probe.region, meanMs, sdMs, down, streak };
}

/**
 * The quartiles of many samples, or all of few: whoever reports more does not weigh more, and outliers do not weigh at
 * all.
 */
export function quartiles(samples: readonly number[]): number[] {
  if (samples.length <= 3) return [...samples];
  const sorted = samples.toSorted((a, b) => a - b);
  return [0.25, 0.5, 0.75].map((q) => sorted[Math.floor(q * (sorted.length - 1))]!);
}
