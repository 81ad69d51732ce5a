/**
 * What keeping d chunks of an object saves, and which ones they are: the caching options (Agar, ICDCS'17, section IV) for the
 * read that the reader really makes, from the best k + delta sources of which the first k count. Pure.
 */
import { CHUNKS_MAX, isFunctional } from "@agarose/core";
import { cachingOptions, expectedReadMs, type CachingOption, type ChunkLatency } from "@agarose/solver";
import { deliveryMs, type RegionEstimate } from "../../state/configuration.ts";
import { NO_PEERS, type PeerView } from "../../peers/peer-view.ts";
import type { ObjectShape } from "./object-shape.ts";

export interface CacheView {
  readonly regions: readonly RegionEstimate[];
  /** Time to deliver a cached chunk. */
  readonly cacheMs: number;
  /** Requests beyond k that readers make. */
  readonly delta: number;
  /**
   * Cache rows of the code that no region has (Sprout): this PoP's k of them, which those of PoPs with other numbers differ
   * from, as far as there are rows for all. Default: cache copies of stored chunks.
   */
  readonly functionalPop?: number | undefined;
  /** Default: none. */
  readonly peers?: PeerView | undefined;
  /** What is cached of a version, or is to be. Default: nothing. */
  readonly cachedOf?: ((version: string) => readonly number[]) | undefined;
}

/** An object and how often it is asked for here. */
export interface ValuedObject {
  readonly object: ObjectShape;
  /** Requests per period. */
  readonly popularity: number;
}

/** When fewer than k chunks can be had, those of regions that are down count too, this far away. */
const DOWN_MS = 60_000;
/** A cached set stays while another of its size is better by less than this: estimates wobble, and writes cost. */
const WORTH_CHANGING = 0.05;
/** Objects whose chunks are equally far share one entry, so few are needed. */
const KNOWN_MAX = 8_192;

/** d chunks of one object. */
interface Kept {
  /** Ascending. */
  readonly chunks: readonly number[];
  readonly savedMs: number;
}

/** Valid as long as latencies, popularity and what is cached stay the same. */
export class CacheOptions {
  readonly #view: CacheView;
  readonly #peers: PeerView;
  readonly #byShape = new Map<string, readonly CachingOption[]>();
  readonly #byVersion = new Map<string, Kept[]>();

  constructor(view: CacheView) {
    this.#view = view;
    this.#peers = view.peers ?? NO_PEERS;
  }

  get regions(): readonly RegionEstimate[] {
    return this.#view.regions;
  }

  /** Places in `regions` of those that a read can ask for a chunk now, one for each chunk. */
  regionsOf({ placement }: ObjectShape): number[] {
    const { regions } = this.#view;
    return placement
      .map((name) => regions.findIndex((region) => region.name === name && !region.down))
      .filter((place) => place >= 0);
  }

  /** Milliseconds that a read gets faster by keeping d chunks, on the mean of all reads here and at peers; >= 0. */
  savedMs(valued: ValuedObject, d: number): number {
    return this.#keptOf(valued)[d]?.savedMs ?? 0;
  }

  /** Which d chunks to keep: the best ones, but those that are cached as long as they are hardly worse. */
  chunksFor(valued: ValuedObject, d: number): readonly number[] {
    return this.#keptOf(valued)[d]?.chunks ?? [];
  }

  /** `savedMs` for exactly these chunks. */
  savedMsWith(valued: ValuedObject, chunks: readonly number[]): number {
    const { object } = valued;
    const sources = this.#sourcesOf(object);
    const saved = readMs(sources, [], object, this.#view) - readMs(sources, chunks, object, this.#view);
    return this.#meanOfReads(valued, Math.max(0, saved), chunks);
  }

  /** By d, from 0. */
  #keptOf(valued: ValuedObject): readonly Kept[] {
    const { version } = valued.object;
    const known = this.#byVersion.get(version);
    if (known) return known;
    const kept: Kept[] = [{ chunks: [], savedMs: 0 }];
    for (const { d, value } of this.#optionsOf(valued.object)) {
      const chunks = this.#best(valued.object, d);
      kept.push({ chunks, savedMs: this.#meanOfReads(valued, value, chunks) });
    }
    const cached = this.#view.cachedOf?.(version) ?? [];
    const best = kept[cached.length];
    const isOther = cached.length > 0 && best && best.chunks.join() !== cached.join();
    if (isOther && !this.#hasForeign(valued.object, cached)) {
      const savedMs = this.savedMsWith(valued, cached);
      if (savedMs >= (1 - WORTH_CHANGING) * best.savedMs) kept[cached.length] = { chunks: cached, savedMs };
    }
    this.#byVersion.set(version, kept);
    return kept;
  }

  /** An object that is kept in whole is kept as data: distance matters no more, and data needs no codec. */
  #best(object: ObjectShape, d: number): readonly number[] {
    const { k } = object;
    if (d >= k) return Array.from({ length: k }, (_, chunk) => chunk);
    const { functionalPop } = this.#view;
    if (functionalPop !== undefined) {
      const first = firstFunctional(object, functionalPop);
      return Array.from({ length: d }, (_, row) => first + row);
    }
    return this.#optionsOf(object)[d - 1]?.chunks ?? [];
  }

  /** Whether rows among these are those of another PoP: this one's number has changed, because there are other peers now. */
  #hasForeign(object: ObjectShape, chunks: readonly number[]): boolean {
    const { functionalPop } = this.#view;
    if (functionalPop === undefined) return false;
    const first = firstFunctional(object, functionalPop);
    return chunks.some((chunk) => isFunctional(object, chunk) && (chunk < first || chunk >= first + object.k));
  }

  #optionsOf(object: ObjectShape): readonly CachingOption[] {
    const { k, m, shardBytes, placement, version } = object;
    const atPeers = this.#peers.chunksOf(version).map(({ chunk, meanMs }) => `${chunk}:${meanMs}`);
    const name = `${k}/${m}/${shardBytes}/${placement.join()}/${atPeers.join()}`;
    let options = this.#byShape.get(name);
    if (!options) {
      if (this.#byShape.size >= KNOWN_MAX) this.#byShape.clear();
      const { cacheMs, delta, functionalPop } = this.#view;
      options = cachingOptions({
        k,
        m,
        chunkBytes: 1,
        sources: this.#sourcesOf(object),
        cacheMs,
        delta,
        functional: functionalPop !== undefined,
        // The value is then the milliseconds saved.
        popularity: 1,
      });
      this.#byShape.set(name, options);
    }
    return options;
  }

  /** All PoPs value chunks by the same sum, the time saved at every one of them; policies ask for the mean of a read. */
  #meanOfReads({ object, popularity }: ValuedObject, savedHereMs: number, chunks: readonly number[]): number {
    const elsewhere = this.#peers.requests.get(object.key) ?? 0;
    if (elsewhere === 0) return savedHereMs;
    const sum = popularity * savedHereMs + this.#peers.savedAtPeers(object, chunks);
    return sum / (popularity + elsewhere);
  }

  /** The nearest source of each chunk: its region, or a peer that holds it. */
  #sourcesOf(object: ObjectShape): ChunkLatency[] {
    const nearest = new Map(regionSources(object, this.#view.regions).map((source) => [source.chunk, source]));
    for (const { chunk, meanMs, sdMs } of this.#peers.chunksOf(object.version)) {
      if (meanMs < (nearest.get(chunk)?.meanMs ?? Infinity)) nearest.set(chunk, { chunk, meanMs, sdMs });
    }
    return [...nearest.values()];
  }
}

/** Rows end at `CHUNKS_MAX`; there is always room for the k of one PoP. */
function firstFunctional({ k, m }: ObjectShape, pop: number): number {
  const pops = Math.floor((CHUNKS_MAX - k - m) / k);
  return k + m + (pop % pops) * k;
}

function regionSources({ k, placement, shardBytes }: ObjectShape, regions: readonly RegionEstimate[]): ChunkLatency[] {
  const byName = new Map(regions.map((region) => [region.name, region]));
  const all = placement.map((name, chunk) => {
    const region = byName.get(name);
    if (!region || region.down) return { chunk, meanMs: DOWN_MS, sdMs: 0, down: true };
    return { chunk, meanMs: deliveryMs(region, shardBytes), sdMs: region.sdMs, down: false };
  });
  const up = all.filter(({ down }) => !down);
  return up.length >= k ? up : all;
}

/** Expected time of a read while exactly the chunks `cached` are cached. */
function readMs(
  sources: readonly ChunkLatency[],
  cached: readonly number[],
  { k }: ObjectShape,
  { cacheMs, delta }: CacheView,
): number {
  if (cached.length >= k) return cacheMs;
  const remote = sources.filter(({ chunk }) => !cached.includes(chunk)).toSorted((a, b) => a.meanMs - b.meanMs);
  return expectedReadMs([...cached.map(() => ({ meanMs: cacheMs })), ...remote.slice(0, k - cached.length + delta)], k);
}
