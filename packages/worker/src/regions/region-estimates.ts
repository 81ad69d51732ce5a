/**
 * What a PoP believes of its regions: how long they take, how much longer for each byte, and whether they answer at
 * all.
 *
 * Only this PoP's probes decide which region is down or slow. Its own reads and clients' reports refine the latencies
 * within bounds: every client counts once, its samples are clamped to 0.5-2x the current estimate, and only quartiles
 * count.
 */
import { LATENCY_UNKNOWN, observeLatency, type LatencyEstimate } from "@agarose/core";
import { deliveryMs, type RegionEstimate } from "@agarose/solver";
import { observeTimes, type LatencyHistogram } from "./latency-histogram.ts";
import { observeHealth, WINSOR_FACTOR, type ProbeHealth } from "./probe-health.ts";
import { msPerByteOf, observeTransfers, type TransferMoments } from "./transfer-rate.ts";

/** One measurement: how long a region took to deliver a chunk. */
export interface RegionSample {
  readonly region: string;
  readonly ms: number;
  readonly bytes: number;
}

/** A measurement and the client that made it; this PoP itself is the client "". */
export interface ClientSample {
  readonly client: string;
  readonly ms: number;
  readonly bytes: number;
}

/** The probes of one region in one period. */
export interface RegionProbe {
  readonly region: string;
  /** Milliseconds until each answer without content; `Infinity` for a probe without a usable answer. */
  readonly ms: readonly number[];
  /** A read of part of a chunk, where one exists. */
  readonly sized?: { readonly bytes: number; readonly ms: number };
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
  samples: readonly ClientSample[],
): RegionState {
  const { health, estimate: probed } = observeHealth(before, probe.ms);
  const believed = { ...(probed ?? LATENCY_UNKNOWN), msPerByte: before?.msPerByte ?? 0 };
  const own = [probe.sized].filter((sized) => sized !== undefined && Number.isFinite(sized.ms));
  const bounded = [...own.map((sized) => ({ client: "", ...sized! })), ...samples].map((sample) =>
    winsorised(sample, believed),
  );
  const answered = probe.ms.filter(Number.isFinite);
  const transfers = observeTransfers(before?.transfers, [
    ...answered.map((ms) => ({ bytes: 0, ms, weight: 1 })),
    ...oneVoteEach(bounded),
  ]);
  const msPerByte = msPerByteOf(transfers) ?? believed.msPerByte;
  // While a region is slow, only probes say how slow: reads that began earlier measure the past.
  const votes = health.slow ? [] : fixedParts(bounded, msPerByte, believed);
  let estimate: LatencyEstimate | undefined = probed;
  for (const ms of quartiles(votes)) estimate = observeLatency(estimate, ms);
  const { meanMs, sdMs } = estimate ?? LATENCY_UNKNOWN;
  const times = observeTimes(before?.times, [...answered, ...samples.map(({ ms }) => ms)]);
  return { name: probe.region, meanMs, sdMs, msPerByte, ...health, times, transfers };
}

/** Clamps a sample to `WINSOR_FACTOR` around the estimate. */
function winsorised(sample: ClientSample, believed: RegionEstimateParts): ClientSample {
  const expected = deliveryMs(believed, sample.bytes);
  // While the rate is unknown, a sample of many bytes may take longer than any probe.
  const high = believed.msPerByte ? expected : expected + sample.bytes / BYTES_PER_MS_MIN;
  const ms = Math.min(high * WINSOR_FACTOR, Math.max(expected / WINSOR_FACTOR, sample.ms));
  return { ...sample, ms };
}

type RegionEstimateParts = Pick<RegionEstimate, "meanMs" | "msPerByte">;
/** 1 MB/s: the slowest transfer that is plausible while the rate is unknown. */
const BYTES_PER_MS_MIN = 1_000;

/** Weights the samples so that those of one client together weigh 1. */
function oneVoteEach(samples: readonly ClientSample[]): { bytes: number; ms: number; weight: number }[] {
  return [...Map.groupBy(samples, ({ client }) => client).values()].flatMap((ofClient) =>
    ofClient.map(({ bytes, ms }) => ({ bytes, ms, weight: 1 / ofClient.length })),
  );
}

/** Returns, per client, the median of its samples without their transfer time. */
function fixedParts(samples: readonly ClientSample[], msPerByte: number, { meanMs }: RegionEstimateParts): number[] {
  return [...Map.groupBy(samples, ({ client }) => client).values()].map((ofClient) => {
    const sorted = ofClient.map(({ ms, bytes }) => ms - msPerByte * bytes).toSorted((a, b) => a - b);
    const median = sorted[Math.floor((sorted.length - 1) / 2)]!;
    return Math.min(meanMs * WINSOR_FACTOR, Math.max(meanMs / WINSOR_FACTOR, median));
  });
}

/**
 * Returns the quartiles of more than three samples, or all of fewer. More samples weigh no more; outliers weigh
 * nothing.
 */
export function quartiles(samples: readonly number[]): number[] {
  if (samples.length <= 3) return [...samples];
  const sorted = samples.toSorted((a, b) => a - b);
  return [0.25, 0.5, 0.75].map((q) => sorted[Math.floor(q * (sorted.length - 1))]!);
}
