/**
 * Caching options: what keeping d chunks of one object costs and saves (Agar, ICDCS 2017, section IV-A). The reader
 * asks for the best k + delta chunks and uses the first k to arrive.
 */
import { SolverError } from "../errors.ts";
import { lateBinding, type AskedSource } from "./late-binding.ts";

/** One chunk at the best source outside this cache: a region or a peer. */
export interface ChunkLatency extends AskedSource {
  /** Index of the chunk, 0 to k+m-1. */
  readonly chunk: number;
}

/** How reads of an object go. */
export interface ReadConditions {
  /** Milliseconds to read what the cache holds of the object, >= 0. */
  readonly cacheMs: number;
  /** Requests beyond k that a read may make, an integer >= 0; 0 waits for exactly the best k. */
  readonly delta: number;
  /** Milliseconds that a read takes longer which has to decode. Default: 0. */
  readonly decodeMs?: number;
}

/** One object, as a reader at this cache sees it. */
export interface ObjectToCache extends ReadConditions {
  /** Data chunks, an integer >= 1: a read needs k chunks. */
  readonly k: number;
  /** Parity chunks, an integer >= 0. */
  readonly m: number;
  /** Size of one chunk in the unit of the cache's capacity; a positive integer. */
  readonly chunkBytes: number;
  /** One entry per chunk that is available now; chunks of a region that is down have none. */
  readonly sources: readonly ChunkLatency[];
  /** Expected requests in the coming period, >= 0. */
  readonly popularity: number;
  /** The first of k functional chunks (new parity rows) that the cache keeps. Default: it keeps copies. */
  readonly firstRow?: number | undefined;
}

/** One way to cache an object: `d` chunks of it. */
export interface CachingOption {
  /** Chunks kept: 1..k. */
  readonly d: number;
  /** Their indices, ascending: those of stored chunks, or k+m and above for functional chunks. */
  readonly chunks: readonly number[];
  /** Size of the kept chunks, in the unit of `chunkBytes`. */
  readonly weight: number;
  /** Popularity x milliseconds saved per read, >= 0. */
  readonly value: number;
  /** Expected milliseconds of a read with these chunks cached, and the price of its requests as milliseconds. */
  readonly readMs: number;
}

/**
 * Returns the options d = 1..k. An option keeps the most distant chunks that a read without cache would use, so no
 * cache fill fetches the furthest m. With delta 0 and no deviations a read takes as long as its slowest chunk, which is
 * Agar's valuation. Departure from Agar: the option of weight d is valued with d chunks. (The paper's worked example
 * values the option of weight 2 with the latency after one step only.) Throws CODE_INVALID for numbers out of range.
 */
export function cachingOptions(object: ObjectToCache): CachingOption[] {
  checkObject(object);
  const { k, chunkBytes, popularity, firstRow } = object;
  const used = object.sources.toSorted((a, b) => a.meanMs - b.meanMs || a.chunk - b.chunk).slice(0, k);
  const uncachedMs = readMs(object.sources, [], object, object);
  const options: CachingOption[] = [];
  for (let d = 1; d <= k; d++) {
    const kept =
      firstRow === undefined
        ? used.slice(Math.max(0, used.length - d)).map((source) => source.chunk)
        : Array.from({ length: d }, (_, row) => firstRow + row);
    // Fewer than k chunks are available, so there are no more chunks to copy.
    if (kept.length < d) break;
    const ms = readMs(object.sources, kept, object, object);
    const saved = Number.isFinite(uncachedMs) ? Math.max(0, uncachedMs - ms) : 0;
    options.push({
      d,
      chunks: kept.toSorted((a, b) => a - b),
      weight: d * chunkBytes,
      value: popularity * saved,
      readMs: ms,
    });
  }
  return options;
}

/**
 * Returns the expected time of a read while exactly the chunks `cached` are cached, and what its requests cost as
 * milliseconds. A copy replaces its stored chunk; a functional chunk leaves all stored ones to ask for.
 */
export function readMs(
  sources: readonly ChunkLatency[],
  cached: readonly number[],
  { k }: { readonly k: number },
  { cacheMs, delta, decodeMs = 0 }: ReadConditions,
): number {
  if (cached.length >= k) return cacheMs;
  const remote = nearestBeside(sources, cached, k + delta);
  const needed = [...cached, ...remote.slice(0, k - cached.length).map(({ chunk }) => chunk)];
  const { ms } = lateBinding([...cached.map(() => ({ meanMs: cacheMs })), ...remote], k);
  return needed.some((chunk) => chunk >= k) ? ms + decodeMs : ms;
}

/** Returns the nearest sources of chunks that are not cached: as many as make `count` with the cached ones. */
export function nearestBeside(
  sources: readonly ChunkLatency[],
  cached: readonly number[],
  count: number,
): ChunkLatency[] {
  const byDistance = sources.filter(({ chunk }) => !cached.includes(chunk)).toSorted((a, b) => a.meanMs - b.meanMs);
  return byDistance.slice(0, Math.max(0, count - cached.length));
}

function checkObject({ k, m, chunkBytes, sources, cacheMs, delta, popularity }: ObjectToCache): void {
  const integers = { k, m, chunkBytes, delta };
  const leasts = { k: 1, m: 0, chunkBytes: 1, delta: 0 };
  for (const name of Object.keys(leasts) as (keyof typeof leasts)[]) {
    if (Number.isSafeInteger(integers[name]) && integers[name] >= leasts[name]) continue;
    throw new SolverError(
      "CODE_INVALID",
      `${name} must be an integer >= ${leasts[name]}, got ${integers[name]}`,
      integers,
    );
  }
  const numbers = [cacheMs, popularity, ...sources.flatMap(({ meanMs, sdMs = 0 }) => [meanMs, sdMs])];
  if (numbers.every((number) => Number.isFinite(number) && number >= 0)) return;
  throw new SolverError("CODE_INVALID", `times and popularity must be finite and >= 0, got ${numbers.join(", ")}`, {
    numbers,
  });
}
