/**
 * The read plan: for one stripe, every way to get every chunk, best first. Requests start in this order and replace
 * failed ones in it.
 *
 * Every chunk comes first from its best source (Agar, section IV; EC-Cache, section 4.2). Then come second sources of
 * the same chunks, and last the sources that failed recently.
 */
import type { LatencyEstimate } from "../latency.ts";
import { CHUNKS_MAX, type Code, type Manifest } from "../format/manifest/index.ts";
import type { Random } from "../ports.ts";
import type { ChunkSource } from "../sources/source.ts";
import type { SourceHealth } from "../sources/source-health.ts";

/** One possible request: this chunk from this source. */
export interface Candidate {
  readonly chunk: number;
  readonly source: ChunkSource;
  readonly estimate: LatencyEstimate;
}

/** How to order the candidates of a stripe. */
export interface PlanOptions {
  /** Which sources failed recently. They come last. */
  readonly health?: Pick<SourceHealth, "isAvoided">;
  /** Chooses among equally good sources. Default: always alike. */
  readonly random?: Random;
  /**
   * Whether the edge's chunks come first, however far it is. It sends them anyway, so that on a narrow line the same
   * ones of a region would only delay them. Default: no.
   */
  readonly isNarrow?: boolean | undefined;
  /** Which chunks to plan. Default: all that there may be. */
  readonly chunks?: readonly number[];
}

/**
 * Relative jitter of latencies: sources that differ by less are equally good, and chance spreads the load over them.
 */
const EQUALLY_GOOD = 0.05;
const CHUNKS = Array.from({ length: CHUNKS_MAX }, (_, chunk) => chunk);
/** One request saves k - 1 others, so it may take this many times as long as they. */
const SLOWER_MAX = 3;
/** A parity or functional chunk costs a decode, so a data chunk wins when both take the same time. */
const DECODE_MS = 1;

/**
 * Returns all candidates of stripe `stripe`, in the order in which a read should use them. Any k chunks decode, so a
 * functional chunk (index n and above) replaces any other and is ranked like them.
 */
export function planStripe(
  code: PlannedCode,
  stripe: number,
  sources: readonly ChunkSource[],
  options: PlanOptions = {},
): Candidate[] {
  const { chunks = CHUNKS } = options;
  const offers = sources
    .flatMap((source) =>
      chunks.filter((chunk) => source.has(stripe, chunk)).map((chunk) => scored(code, chunk, source, options)),
    )
    .toSorted((a, b) => a.score - b.score || a.chunk - b.chunk);
  const sound = bestOfEachChunk(offers.filter(({ isSuspect }) => !isSuspect));
  return [...new Set([...sound, ...offers.toSorted((a, b) => Number(a.isSuspect) - Number(b.isSuspect))])];
}

/**
 * Returns how many candidates to start with: k + delta requests, but only k if caches hold the best k. An extra
 * request to a bucket would then be the slowest one by far.
 */
export function startCount(k: number, delta: number, candidates: readonly Candidate[]): number {
  const best = bestOfEachChunk(candidates);
  return Math.min(leavesEdge(k, best) ? k + delta : k, best.length);
}

/**
 * Whether to ask for chunk `wanted` alone rather than for k others. Others are better when caches hold them and not
 * this one, and when its source is far slower than theirs, or down.
 */
export function asksAlone(k: number, wanted: number, candidates: readonly Candidate[]): boolean {
  const best = bestOfEachChunk(candidates);
  const own = best.find(({ chunk }) => chunk === wanted);
  const others = best.filter(({ chunk }) => chunk !== wanted);
  if (!own || others.length < k) return own !== undefined;
  const isSlow = own.estimate.meanMs > SLOWER_MAX * others[k - 1]!.estimate.meanMs;
  return own.source.kind !== "region" || (leavesEdge(k, others) && !isSlow);
}

function leavesEdge(k: number, best: readonly Candidate[]): boolean {
  return best.slice(0, k).some(({ source }) => source.kind === "region");
}

/**
 * Returns the milliseconds of a read by this plan if every source takes its mean: the k-th smallest of the first k +
 * delta requests. With delta = 0 this is Agar's maximum of means. Infinity if there are fewer than k chunks.
 */
export function planReadMs(k: number, delta: number, candidates: readonly Candidate[]): number {
  const started = bestOfEachChunk(candidates).slice(0, startCount(k, delta, candidates));
  return started.map(({ estimate }) => estimate.meanMs).toSorted((a, b) => a - b)[k - 1] ?? Number.POSITIVE_INFINITY;
}

/** Returns the first candidate of each chunk. Only hedging asks two sources for one chunk. */
function bestOfEachChunk<T extends Candidate>(candidates: readonly T[]): T[] {
  const seen = new Set<number>();
  return candidates.filter(({ chunk }) => !seen.has(chunk) && seen.add(chunk));
}

/** A code, and the chunks that no region is known to have yet. */
type PlannedCode = Code & Pick<Manifest, "missing">;

interface Scored extends Candidate {
  /** Whether it has failed lately, or is not there yet. Such ones come last. */
  readonly isSuspect: boolean;
  /** The lowest score comes first. */
  readonly score: number;
}

function scored(code: PlannedCode, chunk: number, source: ChunkSource, options: PlanOptions): Scored {
  const estimate = source.latency;
  const jitter = 1 + EQUALLY_GOOD * (options.random?.() ?? 0);
  const decode = chunk < code.k ? 0 : DECODE_MS;
  const isMissing = source.kind === "region" && code.missing?.includes(chunk);
  const isSuspect = Boolean(isMissing || options.health?.isAvoided(source.id));
  const ms = options.isNarrow && source.kind === "edge" ? 0 : estimate.meanMs * jitter;
  return { chunk, source, estimate, isSuspect, score: ms + decode };
}
