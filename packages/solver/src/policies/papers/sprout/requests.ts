/** The cost of requests: the mean bound of given probabilities, its gradient, and the queues that they cause. */
import { excess, latencyBound, queueMoments, queueSlopes, type QueueMoments, type Server } from "./latency-bound.ts";
import type { SproutFile } from "./files.ts";

/** Per file: the probability of asking each server. */
export type Probabilities = readonly Float64Array[];

/** The queues at the servers, and what more load would cost. */
interface Crowding {
  readonly queues: readonly QueueMoments[];
  /** Per server: how much one more request per second lengthens the bounds of all reads of a second, in seconds. */
  readonly crowding: Float64Array;
  /** Per file: the z of its bound. */
  readonly z: Float64Array;
  /** Mean over all reads of the bound, in seconds; Infinity when a server that is asked is overloaded. */
  readonly meanBound: number;
}

/** Chunk requests per second at each server. */
export function loadsOf(files: readonly SproutFile[], servers: number, probability: Probabilities): Float64Array {
  const loads = new Float64Array(servers);
  for (const [i, file] of files.entries()) {
    for (const j of file.servers) loads[j]! += file.readsPerSecond * probability[i]![j]!;
  }
  return loads;
}

/** Returns the queues that the probabilities cause, the bound that they give, and the cost of more load. */
export function crowdingOf(
  files: readonly SproutFile[],
  servers: readonly Server[],
  probability: Probabilities,
): Crowding {
  const loads = loadsOf(files, servers.length, probability);
  const queues = servers.map((server, j) => queueMoments(server, loads[j]!));
  const slopes = servers.map((server, j) => queueSlopes(server, loads[j]!));
  const z = new Float64Array(files.length);
  const crowding = new Float64Array(servers.length);
  let sum = 0;
  let rate = 0;
  for (const [i, { readsPerSecond, servers: own }] of files.entries()) {
    if (readsPerSecond === 0) continue;
    const found = latencyBound(probability[i]!, queues);
    z[i] = found.z;
    sum += readsPerSecond * found.bound;
    rate += readsPerSecond;
    for (const j of own) {
      const pi = probability[i]![j]!;
      if (pi > 0 && Number.isFinite(queues[j]!.mean)) {
        crowding[j]! += readsPerSecond * pi * excessSlope(queues[j]!, slopes[j]!, found.z);
      }
    }
  }
  return { queues, crowding, z, meanBound: rate > 0 ? sum / rate : 0 };
}

/** Derivative of `excess` when the queue's moments change by `slopes`. */
function excessSlope({ mean, variance }: QueueMoments, slopes: QueueMoments, z: number): number {
  const root = Math.sqrt((mean - z) ** 2 + variance);
  return (slopes.mean + (root > 0 ? ((mean - z) * slopes.mean + slopes.variance / 2) / root : 0)) / 2;
}

/** Cost of one more request of file i to server j: its own time, and the waits that it causes for all reads. */
export function costOf({ queues, crowding, z }: Crowding, i: number, j: number): number {
  return excess(queues[j]!, z[i]!) + crowding[j]!;
}
