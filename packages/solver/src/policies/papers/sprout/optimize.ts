/**
 * Sprout's optimiser: how many functional chunks d of each file to cache, and with which probabilities to ask the
 * servers, so that the mean latency bound is least (section IV, Algorithm 1).
 *
 * Like the paper's algorithm it alternates: z, then d and the probabilities, until the bound falls no more. Departures:
 * d is chosen exactly, by the knapsack, at the present queues, instead of fixing rounded blocks of files one after the
 * other; the probabilities follow by spectral projected gradient steps. The objective is not convex in all variables
 * once files of different z share a server, so the best round is kept, and single chunks are exchanged at the end.
 */
import { SolverError } from "../../../errors.ts";
import { chooseCached } from "./choose-cached.ts";
import { descend, type Requests } from "./descend.ts";
import { checkFiles, type SproutFile } from "./files.ts";
import { exchange } from "./exchange.ts";
import { checkServers, type Server } from "./latency-bound.ts";
import { projectOnto } from "./project.ts";
import { loadsOf } from "./requests.ts";

/** The chunks to cache, and the servers to request from. */
export interface SproutPlan {
  /** Functional chunks to cache of each file, 0..k. */
  readonly cached: Int32Array;
  /** Per file: the probability of asking each server; they sum to k - d. */
  readonly probability: readonly Float64Array[];
  /** Mean over all reads of the latency bound, in seconds. */
  readonly meanBound: number;
  /** Mean bound after each round, before chunks are exchanged. */
  readonly rounds: readonly number[];
}

interface SproutLimits {
  /** A round that gains less than this share ends the search. Default 1e-4. */
  readonly gainMin?: number;
  /** Rounds at most. Default 20. */
  readonly roundsMax?: number;
  /** Gradient steps in a round. Default 60. */
  readonly stepsMax?: number;
}

/** Files that are placed again in all exchanges together, which bounds their time. */
const EXCHANGED_FILES_MAX = 1000;

/**
 * Returns the best plan found. Throws SCENARIO_INVALID for malformed numbers, or when a full cache still leaves servers
 * overloaded.
 */
export function optimizeSprout(
  files: readonly SproutFile[],
  servers: readonly Server[],
  capacity: number,
  limits: SproutLimits = {},
): SproutPlan {
  const { gainMin = 1e-4, roundsMax = 20, stepsMax = 60 } = limits;
  const triesMax = Math.floor(EXCHANGED_FILES_MAX / Math.max(1, files.length));
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
    const scaled = probability.map((own, i) => projectOnto(files[i]!, files[i]!.k - cached[i]!, own));
    const found = descend(files, servers, scaled, stepsMax);
    rounds.push(found.meanBound);
    const isDone = best !== undefined && found.meanBound >= (1 - gainMin) * best.meanBound;
    if (!best || found.meanBound < best.meanBound) best = { ...found, cached, rounds };
    if (isDone || best.meanBound === 0) break;
    probability = found.probability;
  }
  if (!best || !Number.isFinite(best.meanBound)) {
    const loads = best ? loadsOf(files, servers.length, best.probability) : [];
    throw new SolverError("SCENARIO_INVALID", "the servers cannot keep up with these reads: add servers or cache", {
      capacity,
      loads: [...loads],
    });
  }
  const exchanged = exchange(files, servers, best, capacity, { stepsMax, triesMax });
  return { ...exchanged, ...finish(files, servers, exchanged, { gainMin, roundsMax, stepsMax }), rounds };
}

/** Descends until a round of steps gains less than `gainMin`: few steps a round may not have reached the end. */
function finish(
  files: readonly SproutFile[],
  servers: readonly Server[],
  from: Requests,
  { gainMin, roundsMax, stepsMax }: Required<Pick<SproutLimits, "gainMin" | "roundsMax" | "stepsMax">>,
): Requests {
  let best = from;
  for (let round = 0; round < roundsMax; round++) {
    const found = descend(files, servers, best.probability, stepsMax);
    const isDone = found.meanBound >= (1 - gainMin) * best.meanBound;
    if (found.meanBound < best.meanBound) best = found;
    if (isDone) break;
  }
  return best;
}
