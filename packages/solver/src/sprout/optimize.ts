/**
 * Sprout's optimiser: how many functional chunks d of each file to cache, and with which probabilities to ask the servers,
 * so that the mean latency bound is least (section III).
 *
 * Departures: instead of the paper's projected gradient on rounded blocks of files, conditional gradient steps (Frank &
 * Wolfe 1956) move the probabilities and d together; their linear subproblem has integral solutions. The objective is not
 * convex in all variables once files of different z share a server, so the best iterate is kept. Fractional d are rounded
 * once, by largest remainder, and the probabilities are optimised again for the rounded ones.
 */

import { solverError } from "../errors.ts";
import { excess, latencyBound, queueMoments } from "./latency-bound.ts";
import type { QueueMoments, Server } from "./latency-bound.ts";

export interface SproutFile {
  readonly readsPerSecond: number;
  /** Chunks a read needs. */
  readonly k: number;
  /** The servers that store a chunk of it, one each. */
  readonly servers: readonly number[];
}

export interface SproutPlan {
  /** Functional chunks to cache of each file. */
  readonly cached: Int32Array;
  /** Per file: the probability of asking each server. */
  readonly probability: readonly Float64Array[];
  /** Mean over all reads of the latency bound, in seconds. */
  readonly meanBound: number;
  /** Steps taken in both phases. */
  readonly steps: number;
}

const STEPS_MAX = 60;
/** A phase ends when a step gains less than this share. */
const GAIN_MIN = 1e-5;

/** Throws SCENARIO_INVALID for a malformed file, or when the servers are overloaded even with a full cache. */
export function optimizeSprout(files: readonly SproutFile[], servers: readonly Server[], capacity: number): SproutPlan {
  checkFiles(files, servers.length, capacity);
  const total = files.reduce((sum, { k }) => sum + k, 0);
  // Start with every file cached in the same proportion and all its servers asked alike.
  const share = 1 - Math.min(1, capacity / total);
  const start = files.map((file) => {
    const probability = new Float64Array(servers.length);
    for (const j of file.servers) probability[j] = (file.k * share) / file.servers.length;
    return probability;
  });
  const relaxed = descend(files, servers, start, { capacity });
  const cached = roundDown(files, relaxed.probability, capacity);
  const rounded = relaxed.probability.map((probability, i) => rescale(probability, files[i]!, cached[i]!));
  const final = descend(files, servers, rounded, { cached });
  if (!Number.isFinite(final.meanBound)) {
    throw solverError("SCENARIO_INVALID", "the servers cannot keep up with these reads: add servers or cache", {
      capacity,
    });
  }
  return { cached, probability: final.probability, meanBound: final.meanBound, steps: relaxed.steps + final.steps };
}

type Limit = { readonly capacity: number } | { readonly cached: Int32Array };

interface Iterate {
  readonly probability: readonly Float64Array[];
  readonly meanBound: number;
  readonly steps: number;
}

function descend(
  files: readonly SproutFile[],
  servers: readonly Server[],
  start: readonly Float64Array[],
  limit: Limit,
): Iterate {
  let best: Iterate = { probability: start, meanBound: meanBoundOf(files, servers, start), steps: 0 };
  for (let steps = 1; steps <= STEPS_MAX; steps++) {
    const target = bestVertex(files, costsOf(files, servers, best.probability), limit);
    let improved: Iterate | undefined;
    for (let size = 1; size > 1e-4; size *= 0.6) {
      const probability = best.probability.map((from, i) => from.map((pi, j) => pi + size * (target[i]![j]! - pi)));
      const meanBound = meanBoundOf(files, servers, probability);
      if (meanBound < (improved?.meanBound ?? best.meanBound)) improved = { probability, meanBound, steps };
      else if (improved) break;
    }
    if (!improved) break;
    const isDone = improved.meanBound > (1 - GAIN_MIN) * best.meanBound;
    best = improved;
    if (isDone) break;
  }
  return best;
}

function loadsOf(files: readonly SproutFile[], servers: number, probability: readonly Float64Array[]): Float64Array {
  const loads = new Float64Array(servers);
  for (const [i, file] of files.entries())
    for (const j of file.servers) loads[j]! += file.readsPerSecond * probability[i]![j]!;
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

/** What one more chunk request of a file at a server costs per second: its own time, and the wait it causes to all others. */
function costsOf(
  files: readonly SproutFile[],
  servers: readonly Server[],
  probability: readonly Float64Array[],
): Float64Array[] {
  const loads = loadsOf(files, servers.length, probability);
  const queues = servers.map((server, j) => queueMoments(server, loads[j]!));
  const z = files.map((_, i) => latencyBound(probability[i]!, queues).z);
  const crowding = servers.map((server, j) => crowdingAt(server, loads[j]!, j, files, probability, z));
  return files.map(({ readsPerSecond }, i) =>
    Float64Array.from(queues, (queue: QueueMoments, j) => readsPerSecond * (excess(queue, z[i]!) + crowding[j]!)),
  );
}

/** How much a server's additional load adds to the bounds of all files that use it, by a small difference. */
function crowdingAt(
  server: Server,
  load: number,
  j: number,
  files: readonly SproutFile[],
  probability: readonly Float64Array[],
  z: readonly number[],
): number {
  const step = 1e-6 / server.mean;
  const before = queueMoments(server, load);
  const after = queueMoments(server, load + step);
  let sum = 0;
  for (const [i, { readsPerSecond }] of files.entries()) {
    const pi = probability[i]![j]!;
    if (pi > 0) sum += readsPerSecond * pi * (excess(after, z[i]!) - excess(before, z[i]!));
  }
  return sum / step;
}

/** The cheapest feasible choice at these costs: each file asks its cheapest servers, and the dearest requests are cached away. */
function bestVertex(files: readonly SproutFile[], costs: readonly Float64Array[], limit: Limit): Float64Array[] {
  const asked = files.map((file, i) =>
    file.servers
      .toSorted((a, b) => costs[i]![a]! - costs[i]![b]!)
      .slice(0, "cached" in limit ? file.k - limit.cached[i]! : file.k),
  );
  if ("capacity" in limit) {
    const dearest = asked
      .flatMap((chosen, i) => chosen.map((j) => ({ i, j, cost: costs[i]![j]! })))
      .toSorted((a, b) => b.cost - a.cost)
      .slice(0, limit.capacity);
    for (const { i, j } of dearest) asked[i] = asked[i]!.filter((server) => server !== j);
  }
  return asked.map((chosen, i) => {
    const probability = new Float64Array(costs[i]!.length);
    for (const j of chosen) probability[j] = 1;
    return probability;
  });
}

/** Whole numbers of cached chunks by largest remainder, within the capacity. */
function roundDown(files: readonly SproutFile[], probability: readonly Float64Array[], capacity: number): Int32Array {
  const exact = files.map(({ k }, i) => Math.max(0, k - probability[i]!.reduce((sum, pi) => sum + pi, 0)));
  const cached = Int32Array.from(exact, (d) => Math.floor(d + 1e-9));
  let left = capacity - cached.reduce((sum, d) => sum + d, 0);
  const order = [...exact.keys()].toSorted((a, b) => exact[b]! - cached[b]! - (exact[a]! - cached[a]!) || a - b);
  for (const i of order) {
    if (left <= 0) break;
    if (cached[i]! >= files[i]!.k) continue;
    cached[i]! += 1;
    left--;
  }
  return cached;
}

/** Probabilities that add up to k - d, each at most 1, as near to the given ones as scaling allows. */
function rescale(probability: Float64Array, { k, servers }: SproutFile, cached: number): Float64Array {
  const wanted = k - cached;
  const scaled = new Float64Array(probability.length);
  for (const j of servers) scaled[j] = Math.max(probability[j]!, 1e-9);
  // Those cut off at 1 leave the rest to the others; at most one server reaches 1 per round or it ends.
  for (let round = 0; round <= servers.length; round++) {
    let fixed = 0;
    let free = 0;
    for (const j of servers) {
      if (scaled[j]! >= 1) fixed++;
      else free += scaled[j]!;
    }
    if (wanted <= 0) return scaled.fill(0);
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

function checkFiles(files: readonly SproutFile[], servers: number, capacity: number): void {
  if (!Number.isSafeInteger(capacity) || capacity < 0) {
    throw solverError("SCENARIO_INVALID", `capacity must be an integer >= 0, got ${capacity}`, { capacity });
  }
  for (const [file, { k, servers: own, readsPerSecond }] of files.entries()) {
    const isSound = Number.isInteger(k) && k >= 1 && k <= own.length && new Set(own).size === own.length;
    const isKnown = own.every((server) => Number.isInteger(server) && server >= 0 && server < servers);
    if (isSound && isKnown && Number.isFinite(readsPerSecond) && readsPerSecond >= 0) continue;
    throw solverError("SCENARIO_INVALID", `file ${file}: needs k of its distinct servers, and a rate >= 0`, { file });
  }
}
