/**
 * Sprout's optimiser: how many functional chunks d of each file to cache, and with which probabilities to ask the
 * servers, so that the mean latency bound is least (section IV, Algorithm 1).
 *
 * Like the paper's algorithm it alternates: z, then d and the probabilities, until the bound falls no more. Departures:
 * d is chosen exactly, by the knapsack, at the present queues, instead of fixing rounded blocks of files one after the
 * other; the probabilities follow by conditional gradient steps (Frank & Wolfe 1956) instead of projected ones. The
 * objective is not convex in all variables once files of different z share a server, so the best round is kept.
 */

import { solverError } from "../../errors.ts";
import { chooseCached } from "./choose-cached.ts";
import { descend, loadsOf } from "./descend.ts";
import { checkFiles } from "./files.ts";
import type { SproutFile } from "./files.ts";
import { checkServers } from "./latency-bound.ts";
import type { Server } from "./latency-bound.ts";

/** What to cache, and which servers to ask. */
export interface SproutPlan {
  /** Functional chunks to cache of each file, 0..k. */
  readonly cached: Int32Array;
  /** Per file: the probability of asking each server; they sum to k - d. */
  readonly probability: readonly Float64Array[];
  /** Mean over all reads of the latency bound, in seconds. */
  readonly meanBound: number;
  /** Mean bound after each round. */
  readonly rounds: readonly number[];
}

/** When the search ends. */
export interface SproutLimits {
  /** A round that gains less than this share ends the search. Default 1e-4. */
  readonly gainMin?: number;
  /** Rounds at most. Default 20. */
  readonly roundsMax?: number;
  /** Gradient steps in a round. Default 60. */
  readonly stepsMax?: number;
}

/**
 * Returns the best plan found. Throws SCENARIO_INVALID for malformed numbers, or when a full cache still leaves servers
 * overloaded.
 */
export function optimizeSprout(
  files: readonly SproutFile[],
  servers: readonly Server[],
  capacity: number,
  { gainMin = 1e-4, roundsMax = 20, stepsMax = 60 }: SproutLimits = {},
): SproutPlan {
  checkFiles(files, servers.length, capacity);
  checkServers(servers);
  // The start caches the same share of every file, and asks all its servers alike.
  const total = files.reduce((sum, { k, chunkWeight = 1 }) => sum + k * chunkWeight, 0);
  const share = total > 0 ? 1 - Math.min(1, capacity / total) : 1;
  let probability: readonly Float64Array[] = files.map((file) => {
    const alike = new Float64Array(servers.length);
    for (const j of file.servers) alike[j] = (file.k * share) / file.servers.length;
    return alike;
  });
  let best: SproutPlan | undefined;
  const rounds: number[] = [];
  while (rounds.length < roundsMax) {
    const cached = chooseCached(files, servers, probability, capacity);
    const scaled = probability.map((own, i) => rescale(own, files[i]!, cached[i]!));
    const found = descend(files, servers, scaled, cached, stepsMax);
    rounds.push(found.meanBound);
    const isDone = best !== undefined && found.meanBound >= (1 - gainMin) * best.meanBound;
    if (!best || found.meanBound < best.meanBound) best = { ...found, cached, rounds };
    if (isDone || best.meanBound === 0) break;
    probability = found.probability;
  }
  if (!best || !Number.isFinite(best.meanBound)) {
    const loads = best ? loadsOf(files, servers.length, best.probability) : [];
    throw solverError("SCENARIO_INVALID", "the servers cannot keep up with these reads: add servers or cache", {
      capacity,
      loads: [...loads],
    });
  }
  return best;
}

/** Scales probabilities so that they sum to k - d, each at most 1. */
function rescale(probability: Float64Array, { k, servers }: SproutFile, cached: number): Float64Array {
  const wanted = k - cached;
  const scaled = new Float64Array(probability.length);
  if (wanted <= 0) return scaled;
  for (const j of servers) scaled[j] = Math.max(probability[j]!, 1e-9);
  // Probabilities cut off at 1 leave the rest to the others. Each round cuts off at least one, or is the last.
  for (let round = 0; round <= servers.length; round++) {
    let fixed = 0;
    let free = 0;
    for (const j of servers) {
      if (scaled[j]! >= 1) fixed++;
      else free += scaled[j]!;
    }
    if (free === 0) break;
    const factor = (wanted - fixed) / free;
    let isCut = false;
    for (const j of servers) {
      if (scaled[j]! >= 1) continue;
      scaled[j] = scaled[j]! * factor;
      if (scaled[j]! > 1) {
        scaled[j] = 1;
        isCut = true;
      }
    }
    if (!isCut) break;
  }
  return scaled;
}
