/** The probabilities of asking the servers, for given numbers of cached chunks. */

import { excess, latencyBound, queueMoments } from "./latency-bound.ts";
import type { QueueMoments, Server } from "./latency-bound.ts";
import type { SproutFile } from "./files.ts";

/** Probabilities per file and server, and the mean bound in seconds that they give. */
export interface Requests {
  readonly probability: readonly Float64Array[];
  readonly meanBound: number;
}

/** The descent ends when a step gains less than this share. */
const GAIN_MIN = 1e-5;

/**
 * Lowers the mean bound from `start`, which asks for k - d chunks of each file, in at most `stepsMax` conditional
 * gradient steps.
 */
export function descend(
  files: readonly SproutFile[],
  servers: readonly Server[],
  start: readonly Float64Array[],
  cached: Int32Array,
  stepsMax: number,
): Requests {
  let best: Requests = { probability: start, meanBound: meanBoundOf(files, servers, start) };
  for (let steps = 1; steps <= stepsMax; steps++) {
    const target = cheapestRequests(files, servers, best.probability, cached);
    let improved: Requests | undefined;
    for (let size = 1; size > 1e-4; size *= 0.6) {
      const probability = best.probability.map((from, i) => from.map((pi, j) => pi + size * (target[i]![j]! - pi)));
      const meanBound = meanBoundOf(files, servers, probability);
      if (meanBound < (improved?.meanBound ?? best.meanBound)) improved = { probability, meanBound };
      else if (improved) break;
    }
    if (!improved) break;
    const isDone = improved.meanBound > (1 - GAIN_MIN) * best.meanBound;
    best = improved;
    if (isDone) break;
  }
  return best;
}

/** Chunk requests per second at each server. */
export function loadsOf(
  files: readonly SproutFile[],
  servers: number,
  probability: readonly Float64Array[],
): Float64Array {
  const loads = new Float64Array(servers);
  for (const [i, file] of files.entries()) {
    for (const j of file.servers) loads[j]! += file.readsPerSecond * probability[i]![j]!;
  }
  return loads;
}

function meanBoundOf(
  files: readonly SproutFile[],
  servers: readonly Server[],
  probability: readonly Float64Array[],
): number {
  const loads = loadsOf(files, servers.length, probability);
  const queues = servers.map((server, j) => queueMoments(server, loads[j]!));
  let sum = 0;
  let rate = 0;
  for (const [i, { readsPerSecond }] of files.entries()) {
    if (readsPerSecond > 0) sum += readsPerSecond * latencyBound(probability[i]!, queues).bound;
    rate += readsPerSecond;
  }
  return rate > 0 ? sum / rate : 0;
}

/** The vertex that the gradient points to: each file asks only its k - d cheapest servers. */
function cheapestRequests(
  files: readonly SproutFile[],
  servers: readonly Server[],
  probability: readonly Float64Array[],
  cached: Int32Array,
): Float64Array[] {
  const { queues, crowding, z } = crowdingOf(files, servers, probability);
  return files.map((file, i) => {
    // Cost of one more request: its own time, and the waits that it causes for all others.
    const costOf = (j: number): number => excess(queues[j]!, z[i]!) + crowding[j]!;
    const asked = new Float64Array(servers.length);
    const cheapest = file.servers.toSorted((a, b) => costOf(a) - costOf(b));
    for (const j of cheapest.slice(0, file.k - cached[i]!)) asked[j] = 1;
    return asked;
  });
}

/** The queues at the servers, and what more load would cost. */
export interface Crowding {
  readonly queues: readonly QueueMoments[];
  /** Per server: how much one more request per second lengthens the bounds of all reads of a second, in seconds. */
  readonly crowding: Float64Array;
  /** Per file: the z of its bound. */
  readonly z: readonly number[];
}

/** Returns the queues that the probabilities cause, and the cost of more load by a small difference. */
export function crowdingOf(
  files: readonly SproutFile[],
  servers: readonly Server[],
  probability: readonly Float64Array[],
): Crowding {
  const loads = loadsOf(files, servers.length, probability);
  const queues = servers.map((server, j) => queueMoments(server, loads[j]!));
  const z = files.map((_, i) => latencyBound(probability[i]!, queues).z);
  const crowding = Float64Array.from(servers, (server, j) => {
    const step = (1e-6 * Math.min(1e9, server.parallel ?? 1)) / server.mean;
    const after = queueMoments(server, loads[j]! + step);
    if (!Number.isFinite(after.mean)) return 0;
    let sum = 0;
    for (const [i, { readsPerSecond }] of files.entries()) {
      const pi = probability[i]![j]!;
      if (pi > 0) sum += readsPerSecond * pi * (excess(after, z[i]!) - excess(queues[j]!, z[i]!));
    }
    return sum / step;
  });
  return { queues, crowding, z };
}
