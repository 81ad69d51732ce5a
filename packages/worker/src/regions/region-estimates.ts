/**
 * A PoP's estimates of its regions: how long they need, how much longer for each byte, and whether they answer at
 * all.
 *
 * Only probes decide which region is down or slow. Reads refine the latencies within bounds: their times are clamped to
 * 0.5-2x the current estimate, and all of a period count as much as one probe.
 */
import { LATENCY_UNKNOWN, observeLatency, type LatencyEstimate } from "@agarose/core/sources";
import { deliveryMs, type RegionEstimate } from "@agarose/solver/planner";
import { observeTimes, type LatencyHistogram } from "./latency-histogram.ts";
import { observeHealth, WINSOR_FACTOR, type ProbeHealth } from "./probe-health.ts";
import { msPerByteOf, observeTransfers, type TransferMoments } from "./transfer-rate.ts";

/** How long so many bytes took. */
interface Sample {
  readonly ms: number;
  readonly bytes: number;
}

/** One measurement: how long a region took to deliver a chunk to a read. */
export interface RegionSample extends Sample {
  readonly region: string;
}

/** The probes of one region in one period. */
export interface RegionProbe {
  readonly region: string;
  /** Milliseconds until each answer without content; `Infinity` for a probe without a usable answer. */
  readonly ms: readonly number[];
  /** A read of part of a chunk, where one exists. */
  readonly sized?: Sample;
}

/** An estimate and its ingredients, as `PopState` keeps them. */
export interface RegionState extends RegionEstimate, ProbeHealth {
  readonly msPerByte: number;
  readonly times: LatencyHistogram;
  readonly transfers: TransferMoments;
}

/** Returns the state of one region after a period with these probes and samples of reads. */
export function mergeRegion(
  before: RegionState | undefined,
  probe: RegionProbe,
  samples: readonly Sample[],
): RegionState {
  const { health, estimate: probed } = observeHealth(before, probe.ms);
  const believed = { ...(probed ?? LATENCY_UNKNOWN), msPerByte: before?.msPerByte ?? 0 };
  const sized = probe.sized && Number.isFinite(probe.sized.ms) ? [probe.sized] : [];
  const bounded = [...sized, ...samples].map((sample) => winsorised(sample, believed));
  const answered = probe.ms.filter(Number.isFinite);
  const transfers = observeTransfers(before?.transfers, [
    ...answered.map((ms) => ({ bytes: 0, ms, weight: 1 })),
    // However many reads there are, together they weigh as much as one probe.
    ...bounded.map((sample) => ({ ...sample, weight: 1 / bounded.length })),
  ]);
  const msPerByte = msPerByteOf(transfers) ?? believed.msPerByte;
  // While a region is slow, only probes say how slow: reads that began earlier measure the past.
  let estimate: LatencyEstimate | undefined = probed;
  if (!health.slow && bounded.length > 0) {
    estimate = observeLatency(estimate, fixedPart(bounded, msPerByte, believed));
  }
  const { meanMs, sdMs } = estimate ?? LATENCY_UNKNOWN;
  const times = observeTimes(before?.times, [...answered, ...samples.map(({ ms }) => ms)]);
  return { name: probe.region, meanMs, sdMs, msPerByte, ...health, times, transfers };
}

/** Clamps a sample to `WINSOR_FACTOR` around the estimate. */
function winsorised(sample: Sample, believed: RegionEstimateParts): Sample {
  const expected = deliveryMs(believed, sample.bytes);
  // While the rate is unknown, a sample of many bytes may take longer than any probe.
  const high = believed.msPerByte ? expected : expected + sample.bytes / BYTES_PER_MS_MIN;
  const ms = Math.min(high * WINSOR_FACTOR, Math.max(expected / WINSOR_FACTOR, sample.ms));
  return { ...sample, ms };
}

type RegionEstimateParts = Pick<RegionEstimate, "meanMs" | "msPerByte">;
/** 1 MB/s: the slowest transfer that is plausible while the rate is unknown. */
const BYTES_PER_MS_MIN = 1_000;

/** Returns the median of the samples without their transfer time. */
function fixedPart(samples: readonly Sample[], msPerByte: number, { meanMs }: RegionEstimateParts): number {
  const sorted = samples.map(({ ms, bytes }) => ms - msPerByte * bytes).toSorted((a, b) => a - b);
  const median = sorted[Math.floor((sorted.length - 1) / 2)]!;
  return Math.min(meanMs * WINSOR_FACTOR, Math.max(meanMs / WINSOR_FACTOR, median));
}
