/**
 * The read plan: for one stripe, every way to get every chunk, best first.
 *
 * The first k + delta entries are distinct chunks from their best sources (Agar IV, EC-Cache 4.2); behind them stand the
 * remaining chunks and then second sources of the same chunks, in the order in which they replace what fails.
 */
import type { LatencyEstimate } from "./latency.ts";
import type { Code } from "./manifest.ts";
import type { Random } from "./ports.ts";
import type { ChunkSource } from "./source.ts";

/** One possible request: this chunk from this source. */
export interface Candidate {
  readonly chunk: number;
  readonly source: ChunkSource;
  readonly estimate: LatencyEstimate;
}

export interface PlanOptions {
  /** Sources that failed earlier in this read: they are asked last. */
  readonly failed?: ReadonlySet<string>;
  readonly random: Random;
}

/** Equally good sources differ by less than this; the choice among them is random, which spreads the load. */
const EQUALLY_GOOD = 0.05;
/** A parity chunk costs a decode, so a data chunk wins when both take the same time. */
const DECODE_MS = 1;
const FAILED_MS = 1e6;

/** All candidates of stripe `stripe`, in the order in which a read should use them. */
export function planStripe(
  code: Code,
  stripe: number,
  sources: readonly ChunkSource[],
  options: PlanOptions,
): Candidate[] {
  const first: Scored[] = [];
  const alternates: Scored[] = [];
  for (let chunk = 0; chunk < 2 * code.k + code.m; chunk++) {
    const offers = sources
      .filter((source) => source.has(stripe, chunk))
      .map((source) => scored(code, chunk, source, options))
      .toSorted(byScore);
    if (offers[0]) first.push(offers[0]);
    alternates.push(...offers.slice(1));
  }
  return [...first.toSorted(byScore), ...alternates.toSorted(byScore)].map(({ candidate }) => candidate);
}

/**
 * How many of the candidates to start with: k + delta, but only k where caches hold them all, because an extra request
 * to a bucket would then be the slowest one by far.
 */
export function startCount(k: number, delta: number, candidates: readonly Candidate[]): number {
  const leavesEdge = candidates.slice(0, k).some(({ source }) => source.kind === "region");
  return Math.min(leavesEdge ? k + delta : k, candidates.length);
}

/**
 * Expected milliseconds of a read by this plan when every source takes its mean: the k-th smallest of the k + delta
 * first requests (Agar's max-of-means for delta = 0). Infinity when fewer than k chunks can be had.
 */
export function expectedReadMs(k: number, delta: number, candidates: readonly Candidate[]): number {
  const started = candidates.slice(0, startCount(k, delta, candidates));
  return started.map(({ estimate }) => estimate.meanMs).toSorted((a, b) => a - b)[k - 1] ?? Number.POSITIVE_INFINITY;
}

interface Scored {
  readonly candidate: Candidate;
  readonly score: number;
}

function scored(code: Code, chunk: number, source: ChunkSource, options: PlanOptions): Scored {
  const estimate = source.latency;
  const jitter = 1 + EQUALLY_GOOD * options.random();
  const decode = chunk < code.k ? 0 : DECODE_MS;
  const failed = options.failed?.has(source.id) ? FAILED_MS : 0;
  return { candidate: { chunk, source, estimate }, score: estimate.meanMs * jitter + decode + failed };
}

function byScore(a: Scored, b: Scored): number {
  return a.score - b.score || a.candidate.chunk - b.candidate.chunk;
}
