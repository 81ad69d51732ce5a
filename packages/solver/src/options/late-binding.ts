/**
 * The expected time of a read that may request more chunks than it needs (EC-Cache, section 4.3). Where regions are
 * busy, a request beyond k delays other reads, so it must save more time than it costs them.
 */
import { expectedReadMs, type LatencyLaw } from "./latency.ts";

/** A source that a read may ask, with what asking it costs as milliseconds of a reader's waiting. */
export interface AskedSource extends LatencyLaw {
  /** Its price. Default: 0. */
  readonly costMs?: number;
  /** The delay of other reads if this is a request beyond k, in milliseconds. Default: 0. */
  readonly extraMs?: number;
}

/** How many requests beyond k a read makes, and its expected milliseconds with all costs. */
interface LateBinding {
  readonly extra: number;
  readonly ms: number;
}

/**
 * Returns the best number of requests beyond k. `sources`: the k that the read needs, then those that it may ask beside
 * them, in this order. Infinity where there are fewer than k.
 */
export function lateBinding(sources: readonly AskedSource[], k: number): LateBinding {
  let best: LateBinding = { extra: 0, ms: Infinity };
  const isCharged = sources.some(({ extraMs }) => extraMs);
  // Another request that costs nothing never makes a read longer.
  for (let count = isCharged ? k : Math.max(k, sources.length); count <= sources.length; count++) {
    const asked = sources.slice(0, count);
    const costs = asked.map(({ costMs = 0, extraMs = 0 }, i) => (i < k ? costMs : costMs + extraMs));
    const ms = costs.reduce((sum, cost) => sum + cost, expectedReadMs(asked, k));
    if (ms < best.ms) best = { extra: count - k, ms };
  }
  return best;
}

/**
 * The delay that a request beyond k causes to other reads of a region that is busy for a share `utilization` of the
 * time. In an M/M/1 queue another request delays the others by utilization / (1 - utilization) of its own time in
 * total, and a read waits for one of its k requests. A region farther than the k nearest chunks delays no read.
 */
export function busyChargeMs(meanMs: number, k: number, utilization: number): number {
  return (utilization * meanMs) / (1 - utilization) / k;
}

/** Results by what they depend on: a number at a time leads to the next map, and the last one to the result. */
interface Known extends Map<number, Known> {
  result?: LateBinding;
}

/**
 * Returns `lateBinding` with a memory: objects of one placement share a result, so few are computed. Planning asks so
 * often that a text as the key would take most of its time.
 */
export function memoizedLateBinding(): typeof lateBinding {
  const root: Known = new Map();
  return (sources, k) => {
    let known = below(root, k);
    for (const { meanMs, sdMs = 0, costMs = 0, extraMs = 0 } of sources)
      known = [meanMs, sdMs, costMs, extraMs].reduce(below, known);
    return (known.result ??= lateBinding(sources, k));
  };
}

function below(known: Known, number: number): Known {
  let next = known.get(number);
  if (!next) known.set(number, (next = new Map()));
  return next;
}
