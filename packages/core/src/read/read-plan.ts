/**
 * The read plan: for one stripe, every way to get every chunk, best first.
 *
 * First every chunk from its best source (Agar IV, EC-Cache 4.2), then second sources of the same chunks, and last whatever
 * only a source could give that failed lately: the order in which requests start, and in which they replace what fails.
 */
import type { LatencyEstimate } from "../latency.ts";
import { CHUNKS_MAX, type Code } from "../format/manifest.ts";
import type { Random } from "../ports.ts";
import type { ChunkSource } from "../sources/source.ts";

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
/** Of several candidates the one of lower rank comes first. */
const BEST = 0;
const ALTERNATE = 1;
const FAILED = 2;
/** A parity or functional chunk costs a decode, so a data chunk wins when both take the same time. */
const DECODE_MS = 1;

/**
 * All candidates of stripe `stripe`, in the order in which a read should use them. Any k chunks decode, so a functional
 * chunk (index n and above) stands in for any other and is ranked like them.
 */
export function planStripe(
  code: Code,
  stripe: number,
  sources: readonly ChunkSource[],
  options: PlanOptions,
): Candidate[] {
  const ranked: Scored[] = [];
  for (let chunk = 0; chunk < CHUNKS_MAX; chunk++) {
    const offers = sources
      .filter((source) => source.has(stripe, chunk))
      .map((source) => scored(code, chunk, source, options))
      .toSorted(byRank);
    for (const [place, offer] of offers.entries()) {
      ranked.push(place > 0 && offer.rank === BEST ? { ...offer, rank: ALTERNATE } : offer);
    }
  }
  return ranked.toSorted(byRank).map(({ candidate }) => candidate);
}

/**
 * How many of the candidates to start with: k + delta, but only k where caches hold them all, because an extra request
 * to a bucket would then be the slowest one by far.
 */
export function startCount(k: number, delta: number, candidates: readonly Candidate[]): number {
  const best = bestOfEachChunk(candidates);
  const leavesEdge = best.slice(0, k).some(({ source }) => source.kind === "region");
  return Math.min(leavesEdge ? k + delta : k, best.length);
}

/**
 * Expected milliseconds of a read by this plan when every source takes its mean: the k-th smallest of the k + delta
 * first requests (Agar's max-of-means for delta = 0). Infinity when fewer than k chunks can be had.
 */
export function planReadMs(k: number, delta: number, candidates: readonly Candidate[]): number {
  const started = bestOfEachChunk(candidates).slice(0, startCount(k, delta, candidates));
  return started.map(({ estimate }) => estimate.meanMs).toSorted((a, b) => a - b)[k - 1] ?? Number.POSITIVE_INFINITY;
}

/** The candidates that a read starts from: asking two sources for one chunk is left to hedging. */
function bestOfEachChunk(candidates: readonly Candidate[]): Candidate[] {
  const seen = new Set<number>();
  return candidates.filter(({ chunk }) => !seen.has(chunk) && seen.add(chunk));
}

interface Scored {
  readonly candidate: Candidate;
  readonly rank: typeof BEST | typeof ALTERNATE | typeof FAILED;
  /** Of one rank, that of the lower score comes first. */
  readonly score: number;
}

function scored(code: Code, chunk: number, source: ChunkSource, options: PlanOptions): Scored {
  const estimate = source.latency;
  const jitter = 1 + EQUALLY_GOOD * options.random();
  const decode = chunk < code.k ? 0 : DECODE_MS;
  const rank = options.failed?.has(source.id) ? FAILED : BEST;
  return { candidate: { chunk, source, estimate }, rank, score: estimate.meanMs * jitter + decode };
}

function byRank(a: Scored, b: Scored): number {
  return a.rank - b.rank || a.score - b.score || a.candidate.chunk - b.candidate.chunk;
}
