/** The distribution of a region's latency, in classes that grow by a half, where older measurements fade. Pure. */

/** Weight of each class. Class i holds times up to `classEndMs(i)`. */
export type LatencyHistogram = readonly number[];

/** 1 ms to more than a minute. */
const CLASSES = 28;
const GROWTH = 1.5;
/** The weight that measurements keep from one period to the next: an hour fades to a thousandth. */
const KEEP = 0.89;

/** Returns the upper end of a class in milliseconds. */
function classEndMs(index: number): number {
  return GROWTH ** index;
}

/** Returns `before`, faded by one period, with the times in milliseconds that were measured in it. */
export function observeTimes(before: LatencyHistogram | undefined, times: readonly number[]): LatencyHistogram {
  const classes = Array.from({ length: CLASSES }, (_, i) => round((before?.[i] ?? 0) * KEEP));
  for (const ms of times) classes[classOf(ms)]! += 1;
  return classes;
}

/** Returns the milliseconds that a share `q` (0 to 1) of the measurements did not exceed, or undefined without any. */
export function quantileMs(histogram: LatencyHistogram, q: number): number | undefined {
  const all = histogram.reduce((sum, weight) => sum + weight, 0);
  if (all === 0) return undefined;
  let below = 0;
  for (const [i, weight] of histogram.entries()) {
    below += weight;
    if (below >= q * all) return classEndMs(i);
  }
  return classEndMs(CLASSES - 1);
}

function classOf(ms: number): number {
  return Math.min(CLASSES - 1, Math.max(0, Math.ceil(Math.log(ms) / Math.log(GROWTH))));
}

/** Keeps the stored text short, and lets faded weights end at 0. */
function round(weight: number): number {
  return Math.floor(weight * 1000) / 1000;
}
