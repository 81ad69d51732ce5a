/**
 * Sprout's latency bound (ToN 2017, Lemma 1). Chunks queue at their servers. A read of file i asks server j with
 * probability pi_ij, and ends when its last chunk arrives.
 *
 * The printed Gamma^4 of equation (4) is (E[X^2])^2, by the Pollaczek-Khinchine formula.
 */
import { SolverError } from "../../../errors.ts";

/** Moments of the time one chunk takes at a server, in seconds and their powers. */
export interface Server {
  readonly mean: number;
  readonly secondMoment: number;
  readonly thirdMoment: number;
  /** Chunks it serves side by side, each with its own queue; above 0. Default 1; Infinity: no chunk waits. */
  readonly parallel?: number;
}

/** A server with exponential service times of this rate, above 0. */
export function exponentialServer(ratePerSecond: number): Server {
  return { mean: 1 / ratePerSecond, secondMoment: 2 / ratePerSecond ** 2, thirdMoment: 6 / ratePerSecond ** 3 };
}

/** A server with lognormal service times of this mean, above 0, and standard deviation, >= 0, in seconds. */
export function lognormalServer(mean: number, deviation: number): Server {
  const spread = 1 + (deviation / mean) ** 2;
  return { mean, secondMoment: mean ** 2 * spread, thirdMoment: (mean * spread) ** 3 };
}

/** Moments of the time that a chunk spends at a server, waiting and service: seconds and seconds^2. */
export interface QueueMoments {
  readonly mean: number;
  readonly variance: number;
}

/** Equations (3) and (4): mean and variance of a chunk's time at a server; Infinity when it is overloaded. */
export function queueMoments(server: Server, arrivalsPerSecond: number): QueueMoments {
  const { mean, secondMoment, thirdMoment, parallel = 1 } = server;
  const arrivals = arrivalsPerSecond / parallel;
  const idle = 1 - arrivals * mean;
  if (idle <= 0) return { mean: Infinity, variance: Infinity };
  return {
    mean: mean + (arrivals * secondMoment) / (2 * idle),
    variance:
      Math.max(0, secondMoment - mean ** 2) +
      (arrivals * thirdMoment) / (3 * idle) +
      (arrivals * secondMoment) ** 2 / (4 * idle ** 2),
  };
}

/** Derivatives of `queueMoments` by the arrivals; 0 when the server is overloaded. */
export function queueSlopes(server: Server, arrivalsPerSecond: number): QueueMoments {
  const { mean, secondMoment, thirdMoment, parallel = 1 } = server;
  const arrivals = arrivalsPerSecond / parallel;
  const idle = 1 - arrivals * mean;
  if (idle <= 0) return { mean: 0, variance: 0 };
  return {
    mean: secondMoment / (2 * idle ** 2 * parallel),
    variance: (thirdMoment / 3 + (arrivals * secondMoment ** 2) / (2 * idle)) / (idle ** 2 * parallel),
  };
}

/**
 * Returns the bound on a read's expected duration in seconds, and the z that gives it: the minimum over z >= 0 of
 * equation (2), which is convex in z. `probability` and `queues` have one entry per server.
 */
export function latencyBound(probability: Float64Array, queues: readonly QueueMoments[]): { bound: number; z: number } {
  const asked: Asked[] = [];
  let high = 0;
  for (let j = 0; j < probability.length; j++) {
    const pi = probability[j]!;
    if (pi <= 0) continue;
    asked.push({ pi, ...queues[j]! });
    high = Math.max(high, queues[j]!.mean + 4 * Math.sqrt(queues[j]!.variance));
  }
  // A read of a wholly cached file asks no server.
  if (asked.length === 0) return { bound: 0, z: 0 };
  if (!Number.isFinite(high)) return { bound: Infinity, z: 0 };
  const z = minimize(asked, high);
  let bound = z;
  for (const { pi, ...queue } of asked) bound += pi * excess(queue, z);
  return { bound, z };
}

interface Asked extends QueueMoments {
  readonly pi: number;
}

/**
 * Finds where the slope of equation (2) changes its sign in [0, high], by Newton steps and bisection outside the
 * bracket.
 */
function minimize(asked: readonly Asked[], high: number): number {
  let low = 0;
  let z = high / 2;
  for (let step = 0; step < STEPS_MAX && high - low > 1e-12 * high; step++) {
    let slope = 1;
    let curvature = 0;
    for (const { pi, mean, variance } of asked) {
      const above = mean - z;
      const root = Math.sqrt(above ** 2 + variance);
      if (root === 0) continue;
      slope -= (pi * (1 + above / root)) / 2;
      curvature += (pi * variance) / (2 * root ** 3);
    }
    if (slope > 0) high = z;
    else low = z;
    const next = z - slope / curvature;
    if (Math.abs(next - z) <= 1e-12 * z) break;
    z = next > low && next < high ? next : (low + high) / 2;
  }
  return z;
}

const STEPS_MAX = 80;

/** Half of (E[Q] - z) + sqrt((E[Q] - z)^2 + Var[Q]): a bound on the expected seconds that a chunk takes beyond z. */
export function excess({ mean, variance }: QueueMoments, z: number): number {
  return (mean - z + Math.sqrt((mean - z) ** 2 + variance)) / 2;
}

/** Throws SCENARIO_INVALID when the moments of a server are not those of a positive time. */
export function checkServers(servers: readonly Server[]): void {
  for (const [server, { mean, secondMoment, thirdMoment, parallel = 1 }] of servers.entries()) {
    const areMoments = mean > 0 && secondMoment >= mean ** 2 * (1 - 1e-9) && thirdMoment > 0;
    if (areMoments && Number.isFinite(secondMoment + thirdMoment) && parallel > 0) continue;
    throw new SolverError("SCENARIO_INVALID", `server ${server}: its moments are not those of a time above 0`, {
      server,
    });
  }
}
