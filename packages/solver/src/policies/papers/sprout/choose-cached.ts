/** How many chunks of each file to cache for given queues at the servers: a multiple-choice knapsack. */
import { solveKnapsack } from "../../../knapsack/index.ts";
import { excess, latencyBound, type QueueMoments, type Server } from "./latency-bound.ts";
import type { SproutFile } from "./files.ts";
import { crowdingOf } from "./requests.ts";

/** Replaces the infinite time of an overloaded queue, so that options can be compared. */
const SLOW_SECONDS = 1e9;

/**
 * Returns d of each file within the capacity that saves most: the time of the cached chunks and the waits they would
 * cause.
 */
export function chooseCached(
  files: readonly SproutFile[],
  servers: readonly Server[],
  probability: readonly Float64Array[],
  capacity: number,
): Int32Array {
  const { queues, crowding, z } = crowdingOf(files, servers, probability);
  const start: number[] = [0];
  const weights: number[] = [];
  const values: number[] = [];
  for (const [i, file] of files.entries()) {
    const cost = costsByCached(file, queues, crowding, z[i]!);
    for (let d = 1; d <= file.k; d++) {
      weights.push(d * (file.chunkWeight ?? 1));
      values.push(Math.max(0, file.readsPerSecond * (cost[0]! - cost[d]!)));
    }
    start.push(weights.length);
  }
  const { choice } = solveKnapsack({
    capacity,
    start: Uint32Array.from(start),
    weights: Float64Array.from(weights),
    values: Float64Array.from(values),
  });
  return Int32Array.from(choice, (option) => option + 1);
}

/**
 * Cost of one read by d: its bound when it asks the k - d cheapest servers, and the waits that it causes for other
 * reads.
 */
function costsByCached(
  { k, servers }: SproutFile,
  queues: readonly QueueMoments[],
  crowding: Float64Array,
  z: number,
): number[] {
  const costOf = (j: number): number => Math.min(SLOW_SECONDS, excess(queues[j]!, z)) + crowding[j]!;
  const cheapest = servers.toSorted((a, b) => costOf(a) - costOf(b) || a - b);
  return Array.from({ length: k + 1 }, (_, d) => {
    const asked = cheapest.slice(0, k - d);
    const { bound } = latencyBound(
      new Float64Array(asked.length).fill(1),
      asked.map((j) => queues[j]!),
    );
    return Math.min(SLOW_SECONDS, bound) + asked.reduce((sum, j) => sum + crowding[j]!, 0);
  });
}
