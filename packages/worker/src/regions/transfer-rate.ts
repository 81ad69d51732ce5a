/**
 * How much longer a region takes for each byte: the slope of a straight line through (bytes, milliseconds) by weighted
 * least squares, where older measurements fade. Pure.
 */

/** Sums over weighted measurements: all that the fit needs. */
export interface TransferMoments {
  readonly weight: number;
  readonly bytes: number;
  readonly ms: number;
  readonly bytesBytes: number;
  readonly bytesMs: number;
}

interface TransferSample {
  readonly bytes: number;
  readonly ms: number;
  readonly weight: number;
}

const NONE: TransferMoments = { weight: 0, bytes: 0, ms: 0, bytesBytes: 0, bytesMs: 0 };
/** The weight that sums keep from one period to the next. */
const KEEP = 0.8;
/** Sizes must differ by so much (standard deviation): otherwise noise would pass for a rate. */
const SPREAD_BYTES_MIN = 32 * 1024;
/** Fewer measurements do not make a line. */
const WEIGHT_MIN = 3;
/** 50 kB/s: no bucket that is up is slower. */
export const MS_PER_BYTE_MAX = 1 / 50;

/** Returns `before`, faded by one period, with the measurements of that period. */
export function observeTransfers(
  before: TransferMoments | undefined,
  samples: readonly TransferSample[],
): TransferMoments {
  const sum: { -readonly [Name in keyof TransferMoments]: number } = { ...(before ?? NONE) };
  for (const name of Object.keys(NONE) as (keyof TransferMoments)[]) sum[name] *= KEEP;
  for (const sample of samples) {
    sum.weight += sample.weight;
    sum.bytes += sample.weight * sample.bytes;
    sum.ms += sample.weight * sample.ms;
    sum.bytesBytes += sample.weight * sample.bytes ** 2;
    sum.bytesMs += sample.weight * sample.bytes * sample.ms;
  }
  return sum;
}

/** Returns milliseconds per byte, at least 0, or undefined where the sizes are too few or too similar. */
export function msPerByteOf({ weight, bytes, ms, bytesBytes, bytesMs }: TransferMoments): number | undefined {
  if (weight < WEIGHT_MIN) return undefined;
  const variance = bytesBytes / weight - (bytes / weight) ** 2;
  if (!(variance > SPREAD_BYTES_MIN ** 2)) return undefined;
  const covariance = bytesMs / weight - (bytes / weight) * (ms / weight);
  return Math.min(MS_PER_BYTE_MAX, Math.max(0, covariance / variance));
}
