/**
 * The savings of keeping d chunks of an object, and the chunks: the caching options (Agar, ICDCS'17, section IV)
 * for the actual read, from the best k + delta sources of which the first k count. Pure.
 */

import { NO_PEERS } from "../cooperation/peer-view.ts";
import type { PeerView } from "../cooperation/peer-view.ts";
import { cachingOptions, nearestBeside, readMs } from "../options/caching-option.ts";
import type { CachingOption, ChunkLatency, ReadConditions } from "../options/caching-option.ts";
import { chunkLatencies, isFunctional, nearer } from "../options/sources.ts";
import type { RegionEstimate, SourceLatency } from "../options/sources.ts";
import type { ObjectShape } from "./object-shape.ts";

/** Distinct chunk indices of a code. */
const CHUNK_INDICES = 256;

/** Latencies, peers and contents that options depend on. */
export interface CacheView extends ReadConditions {
  readonly regions: readonly RegionEstimate[];
  /** How much longer the first read of a value takes. Default: no longer. */
  readonly firstRead?: FirstRead | undefined;
  /**
   * This PoP's number: the cache then holds parity rows that no region has (Sprout), where they save more than copies.
   * PoPs of different numbers hold different rows while rows suffice. Default: the cache holds copies of stored chunks.
   */
  readonly functionalPop?: number | undefined;
  /** Whether data chunks of regions that are down are kept instead of parity (Liu et al., V-B). Default: false. */
  readonly recovered?: boolean;
  /** Default: none. */
  readonly peers?: PeerView | undefined;
  /** Returns the chunks of a version that are cached or will be. Default: none. */
  readonly cachedOf?: ((version: string) => readonly number[]) | undefined;
}

/** The first read of a cached value, as of one in Workers KV, whose central stores may be far away. */
export interface FirstRead {
  readonly ms: number;
  /** Further reads within so many periods take `cacheMs`. */
  readonly periods: number;
}

/** An object and how often clients request it here. */
export interface ValuedObject {
  readonly object: ObjectShape;
  /** Requests per period. */
  readonly popularity: number;
}

/** A cached set stays until another of its size is better by this share: estimates fluctuate, and writes cost money. */
const WORTH_CHANGING = 0.05;
/** Shares of first reads are rounded to such steps, so that objects share entries. */
const FIRST_READ_STEP = 1 / 32;
/**
 * Sizes within such a step of an octave count as equal, so that objects share entries: at most 1.1% of what a chunk's
 * transfer takes.
 */
const STEPS_PER_OCTAVE = 32;
/** More than there are steps of sizes below 2^53. */
const STEPS_MAX = 64 * STEPS_PER_OCTAVE;
/** Objects with equally distant chunks share one entry, so few are needed. */
const KNOWN_MAX = 8_192;

/** d chunks of one object. */
interface Kept {
  /** Ascending. */
  readonly chunks: readonly number[];
  readonly savedMs: number;
}

/** The options of one object, by d from 0. */
interface KeptBySize {
  readonly kept: readonly Kept[];
  readonly savedMs: Float64Array;
}

/** The options of all objects, valid while latencies stay the same. `forget` an object that has changed. */
export class CacheOptions {
  readonly #view: CacheView;
  readonly #peers: PeerView;
  readonly #byShape = new Map<string, readonly CachingOption[]>();
  /** The best options for objects that no peer knows. */
  readonly #shared = new Map<string, KeptBySize>();
  /** Of the other objects, and of those that are cached otherwise. */
  readonly #byVersion = new Map<string, KeptBySize>();

  constructor(view: CacheView) {
    this.#view = view;
    this.#peers = view.peers ?? NO_PEERS;
  }

  get regions(): readonly RegionEstimate[] {
    return this.#view.regions;
  }

  /** Returns, for each chunk of a region that is up, the place of its region in `regions`. */
  regionsOf({ placement }: ObjectShape): number[] {
    const { regions } = this.#view;
    return placement
      .map((name) => regions.findIndex((region) => region.name === name && !region.down))
      .filter((place) => place >= 0);
  }

  /**
   * Returns the milliseconds that keeping d chunks saves a read, by d from 0, on the mean of all reads here and at
   * peers; >= 0. Saved money counts as milliseconds. Objects share the list.
   */
  savedMs(valued: ValuedObject): Float64Array {
    return this.#keptOf(valued).savedMs;
  }

  /** Drops what is known of a version: how popular it is here, or what is cached of it, has changed. */
  forget(version: string): void {
    this.#byVersion.delete(version);
  }

  /** Returns the d chunks to keep: the best ones, or the cached ones while those are hardly worse. */
  chunksFor(valued: ValuedObject, d: number): readonly number[] {
    return this.#keptOf(valued).kept[d]?.chunks ?? [];
  }

  /** Returns how many chunks peers hold beside the d that are kept here. */
  chunksBeside(valued: ValuedObject, d: number): number {
    const own = this.chunksFor(valued, d);
    const there = new Set(this.#peers.chunksOf(valued.object.version).map(({ chunk }) => chunk));
    return [...there].filter((chunk) => !own.includes(chunk)).length;
  }

  /** Returns the requests per period of all peers together. */
  requestsElsewhere({ key }: Pick<ObjectShape, "key">): number {
    return this.#peers.requests.get(key) ?? 0;
  }

  /** Returns `savedMs` for these chunks, from what is known where they are those to keep: sizes then count in steps. */
  savedMsNear(valued: ValuedObject, chunks: readonly number[]): number {
    const isKept = sameChunks(this.chunksFor(valued, chunks.length), chunks);
    return isKept ? this.savedMs(valued)[chunks.length]! : this.savedMsWith(valued, chunks);
  }

  /** Returns `savedMs` for exactly these chunks. */
  savedMsWith(valued: ValuedObject, chunks: readonly number[]): number {
    const { object } = valued;
    const sources = this.#sourcesOf(object);
    const view = { ...this.#view, cacheMs: this.cacheMsOf(valued) };
    const saved = readMs(sources, [], object, view) - readMs(sources, chunks, object, view);
    return this.#meanOfReads(valued, Math.max(0, saved), chunks);
  }

  #keptOf(valued: ValuedObject): KeptBySize {
    const { version } = valued.object;
    const known = this.#byVersion.get(version);
    if (known) return known;
    const isShared = this.requestsElsewhere(valued.object) === 0 && this.#peers.chunksOf(version).length === 0;
    const best = isShared ? this.#sharedOf(valued) : this.#bestOf(valued);
    const own = this.#asCached(valued, best);
    if (!isShared || own !== best) this.#byVersion.set(version, own);
    return own;
  }

  #sharedOf(valued: ValuedObject): KeptBySize {
    const name = `${layoutOf(valued.object)}/${this.cacheMsOf(valued)}`;
    let best = this.#shared.get(name);
    if (!best) {
      if (this.#shared.size >= KNOWN_MAX) this.#shared.clear();
      best = this.#bestOf(valued);
      this.#shared.set(name, best);
    }
    return best;
  }

  #bestOf(valued: ValuedObject): KeptBySize {
    const kept: Kept[] = [{ chunks: [], savedMs: 0 }];
    const { functionalPop } = this.#view;
    const isCopied = functionalPop === undefined;
    const rows = this.#optionsOf(valued, isCopied ? undefined : firstFunctional(valued.object, functionalPop));
    const copies = isCopied ? [] : this.#optionsOf(valued);
    for (const [i, option] of rows.entries()) {
      let best = this.#keptBy(valued, option);
      const copy = copies[i] && this.#keptBy(valued, copies[i]);
      // Of equals a row is useful to peers, which hold others.
      if (copy && copy.savedMs > best.savedMs) best = copy;
      kept.push(this.#recovered(valued, best) ?? best);
    }
    return bySize(kept);
  }

  /** A complete object is kept as data chunks: distance no longer matters, and data needs no codec. */
  #keptBy(valued: ValuedObject, { d, chunks: best, value }: CachingOption): Kept {
    const { k } = valued.object;
    const chunks = d < k ? best : Array.from({ length: k }, (_, chunk) => chunk);
    return { chunks, savedMs: this.#meanOfReads(valued, value, chunks) };
  }

  /** Returns `best` with the cached chunks in place of as many others that are hardly better. */
  #asCached(valued: ValuedObject, best: KeptBySize): KeptBySize {
    const { object } = valued;
    const cached = this.#view.cachedOf?.(object.version) ?? [];
    const other = best.kept[cached.length];
    if (cached.length === 0 || !other || sameChunks(other.chunks, cached)) return best;
    const lacksRecovered =
      this.#view.recovered && other.chunks.some((chunk) => this.#isLost(object, chunk) && !cached.includes(chunk));
    if (lacksRecovered || this.#hasForeign(object, cached)) return best;
    const savedMs = this.savedMsWith(valued, cached);
    if (savedMs < (1 - WORTH_CHANGING) * other.savedMs) return best;
    return bySize(best.kept.with(cached.length, { chunks: cached, savedMs }));
  }

  /**
   * While regions are down: the data chunks that they lost, then the most distant other data chunks, instead of parity
   * and functional chunks (Liu et al., section V-B). A read that finds all k data chunks decodes nothing. Returns
   * undefined where nothing is lost, or where `best` saves notably more time.
   */
  #recovered(valued: ValuedObject, best: Kept): Kept | undefined {
    const { object } = valued;
    const d = best.chunks.length;
    if (!this.#view.recovered || d >= object.k) return undefined;
    const data = Array.from({ length: object.k }, (_, chunk) => chunk);
    const lost = data.filter((chunk) => this.#isLost(object, chunk));
    if (lost.length === 0) return undefined;
    const farthest = this.#sourcesOf(object)
      .filter(({ chunk }) => chunk < object.k)
      .toSorted((a, b) => b.meanMs - a.meanMs)
      .map(({ chunk }) => chunk);
    const chunks = [...lost, ...farthest].slice(0, d).toSorted((a, b) => a - b);
    const savedMs = this.savedMsWith(valued, chunks);
    return savedMs >= (1 - WORTH_CHANGING) * best.savedMs ? { chunks, savedMs } : undefined;
  }

  /** Returns whether a data chunk can only be had by decoding. */
  #isLost(object: ObjectShape, chunk: number): boolean {
    if (chunk >= object.k || !this.#view.regions.some(({ down }) => down)) return false;
    return !this.#sourcesOf(object).some((source) => source.chunk === chunk);
  }

  /** Returns whether some rows belong to another PoP: this PoP's number changes with its list of peers. */
  #hasForeign(object: ObjectShape, chunks: readonly number[]): boolean {
    const { functionalPop } = this.#view;
    if (functionalPop === undefined) return false;
    const first = firstFunctional(object, functionalPop);
    return chunks.some((chunk) => isFunctional(object, chunk) && (chunk < first || chunk >= first + object.k));
  }

  #optionsOf(valued: ValuedObject, firstRow?: number): readonly CachingOption[] {
    const { k, m, version } = valued.object;
    const cacheMs = this.cacheMsOf(valued);
    const atPeers = this.#peers.chunksOf(version).map(({ chunk, meanMs }) => `${chunk}:${meanMs}`);
    const name = `${layoutOf(valued.object)}/${cacheMs}/${firstRow}/${atPeers.join()}`;
    let options = this.#byShape.get(name);
    if (!options) {
      if (this.#byShape.size >= KNOWN_MAX) this.#byShape.clear();
      options = cachingOptions({
        ...this.#view,
        k,
        m,
        chunkBytes: 1,
        sources: this.#sourcesOf(inSteps(valued.object)),
        cacheMs,
        firstRow,
        // The value is then the milliseconds saved.
        popularity: 1,
      });
      this.#byShape.set(name, options);
    }
    return options;
  }

  /**
   * The mean time of a read from the cache. Where a value stays near for a time T after a slow first read, reads at
   * random times and the rate r are slow with the share 1 / (1 + r T) (Jung et al., Modeling TTL-based Internet Caches,
   * INFOCOM 2003).
   */
  cacheMsOf({ popularity }: ValuedObject): number {
    const { cacheMs, firstRead } = this.#view;
    if (!firstRead) return cacheMs;
    const share = 1 / (1 + popularity * firstRead.periods);
    const rounded = Math.round(share / FIRST_READ_STEP) * FIRST_READ_STEP;
    return cacheMs + rounded * Math.max(0, firstRead.ms - cacheMs);
  }

  /** All PoPs value chunks by the same sum, the time that every PoP saves; policies ask for the mean of a read. */
  #meanOfReads({ object, popularity }: ValuedObject, savedHereMs: number, chunks: readonly number[]): number {
    const elsewhere = this.requestsElsewhere(object);
    if (elsewhere === 0) return savedHereMs;
    const sum = popularity * savedHereMs + this.#peers.savedAtPeers(object, chunks);
    return sum / (popularity + elsewhere);
  }

  #sourcesOf(object: ObjectShape): ChunkLatency[] {
    return sourcesOf(object, this.#view.regions, this.#peers);
  }
}

/** By placement, which objects of one planner share, and by numbers of code and sizes. */
const layouts = new WeakMap<readonly string[], Map<number, string>>();

/** Returns a name that objects share whose chunks are equally far and, in steps, equally large. */
function layoutOf({ k, m, shardBytes, chunkBytes, placement }: ObjectShape): string {
  let names = layouts.get(placement);
  if (!names) layouts.set(placement, (names = new Map()));
  const [shard, chunk] = [stepOf(shardBytes), stepOf(chunkBytes)];
  const numbers = ((k * 256 + m) * STEPS_MAX + shard) * STEPS_MAX + chunk;
  let name = names.get(numbers);
  if (name === undefined) names.set(numbers, (name = `${k}/${m}/${shard}/${chunk}/${placement.join()}`));
  return name;
}

/** Returns the object with the sizes that all objects of its layout count with. */
function inSteps(object: ObjectShape): ObjectShape {
  const sizeOf = (bytes: number): number => 2 ** (stepOf(bytes) / STEPS_PER_OCTAVE);
  return { ...object, shardBytes: sizeOf(object.shardBytes), chunkBytes: sizeOf(object.chunkBytes) };
}

function stepOf(bytes: number): number {
  return Math.round(STEPS_PER_OCTAVE * Math.log2(Math.max(1, bytes)));
}

function bySize(kept: readonly Kept[]): KeptBySize {
  return { kept, savedMs: Float64Array.from(kept, ({ savedMs }) => savedMs) };
}

/** Returns whether both lists have the same chunks in the same order. */
export function sameChunks(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((chunk, i) => chunk === b[i]);
}

/** Returns the nearest source of each chunk: its region, or a peer that holds it. */
export function sourcesOf(
  object: ObjectShape,
  regions: readonly RegionEstimate[],
  peers: PeerView = NO_PEERS,
): ChunkLatency[] {
  const nearest: (SourceLatency | undefined)[] = chunkLatencies(object, regions);
  for (const { chunk, meanMs, sdMs } of peers.chunksOf(object.version)) {
    nearest[chunk] = nearer(nearest[chunk], { meanMs, sdMs });
  }
  return Array.from(nearest, (latency, chunk) => (latency ? [{ chunk, ...latency }] : [])).flat();
}

/**
 * Returns the first row of a PoP. Those of one PoP always fit. They are counted from the last index, 255, because
 * buckets store extra rows from the first one on.
 */
export function firstFunctional({ k, m }: Pick<ObjectShape, "k" | "m">, pop: number): number {
  const pops = Math.floor((CHUNK_INDICES - k - m) / k);
  return CHUNK_INDICES - ((pop % pops) + 1) * k;
}

/** Returns the regions that a read asks while exactly the chunks `cached` are cached, one for each chunk. */
export function nearestRegions(
  object: ObjectShape,
  cached: readonly number[],
  { regions, peers = NO_PEERS, delta }: Pick<CacheView, "regions" | "peers" | "delta">,
): string[] {
  if (cached.length >= object.k) return [];
  const own = new Map(sourcesOf(object, regions).map(({ chunk, meanMs }) => [chunk, meanMs]));
  return nearestBeside(sourcesOf(object, regions, peers), cached, object.k + delta)
    .filter(({ chunk, meanMs }) => own.get(chunk) === meanMs)
    .map(({ chunk }) => object.placement[chunk]!);
}
