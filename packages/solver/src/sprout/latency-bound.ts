/**
 * Sprout's latency bound (ToN 2017, Lemma 1): chunks queue at their servers, a read of file i asks server j with
 * probability pi_ij, and is done when its last chunk arrives.
 *
 * The printed Gamma^4 of equation (4) is (E[X^2])^2, as the Pollaczek-Khinchine formula has it.
 */

/** Moments of the time one chunk takes at a server, in seconds and their powers. */
export interface Server {
  readonly mean: number;
  readonly secondMoment: number;
  readonly thirdMoment: number;
}

/** A server whose times are exponential. */
export function exponentialServer(ratePerSecond: number): Server {
  return { mean: 1 / ratePerSecond, secondMoment: 2 / ratePerSecond ** 2, thirdMoment: 6 / ratePerSecond ** 3 };
}

export interface QueueMoments {
  readonly mean: number;
  readonly variance: number;
}

/** Mean and variance of the time a chunk spends at a server, equations (3) and (4); infinite when overloaded. */
export function queueMoments({ mean, secondMoment, thirdMoment }: Server, arrivalsPerSecond: number): QueueMoments {
  const idle = 1 - arrivalsPerSecond * mean;
  if (idle <= 0) return { mean: Infinity, variance: Infinity };
  return {
    mean: mean + (arrivalsPerSecond * secondMoment) / (2 * idle),
    variance:
      secondMoment -
      mean ** 2 +
      (arrivalsPerSecond * thirdMoment) / (3 * idle) +
      (arrivalsPerSecond * secondMoment) ** 2 / (4 * idle ** 2),
  };
}

/** Bound on a read's expected duration and the z that gives it: the minimum over z >= 0 of equation (2), which is convex in z. */
export function latencyBound(probability: Float64Array, queues: readonly QueueMoments[]): { bound: number; z: number } {
  let high = 0;
  let isUsed = false;
  for (const [j, pi] of probability.entries()) {
    if (pi <= 0) continue;
    isUsed = true;
    high = Math.max(high, queues[j]!.mean + 4 * Math.sqrt(queues[j]!.variance));
  }
  // A file that is wholly in the cache asks no server.
  if (!isUsed) return { bound: 0, z: 0 };
  if (!Number.isFinite(high)) return { bound: Infinity, z: 0 };
  let low = 0;
  for (let step = 0; step < 60; step++) {
    const left = low + (high - low) / 3;
    const right = high - (high - low) / 3;
    if (boundAt(left, probability, queues) <= boundAt(right, probability, queues)) high = right;
    else low = left;
  }
  const z = (low + high) / 2;
  return { bound: boundAt(z, probability, queues), z };
}

function boundAt(z: number, probability: Float64Array, queues: readonly QueueMoments[]): number {
  let sum = z;
  for (let j = 0; j < probability.length; j++) if (probability[j]! > 0) sum += probability[j]! * excess(queues[j]!, z);
  return sum;
}

/** Half of (E[Q] - z) + sqrt((E[Q] - z)^2 + Var[Q]): a bound on how much longer than z a chunk takes. */
export function excess({ mean, variance }: QueueMoments, z: number): number {
  return (mean - z + Math.sqrt((mean - z) ** 2 + variance)) / 2;
}
