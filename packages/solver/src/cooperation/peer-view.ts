/**
 * * The basis of a PoP's plan when it has peers (Agar, ICDCS'17, section VI): chunks in their caches are further
 * sources, and what they read from here is worth caching. Pure.
 *
 * All PoPs maximise the same sum, the time that every PoP saves together. It never decreases as long as only one PoP
 * changes its cache at a time (block-coordinate ascent).
 */
import { memoizedLateBinding } from "../options/late-binding.ts";
import { chunkLatencies, DOWN_MS, nearer, priced, type Placed, type SourceLatency } from "../options/sources.ts";
import type { PopularityDigest } from "./peer-message.ts";

/** A chunk in a peer's cache, and how far it is. */
interface PeerChunk {
  readonly chunk: number;
  readonly pop: string;
  readonly meanMs: number;
  readonly sdMs: number;
}

/** Facts that determine how peers read an object. */
interface PlacedObject extends Placed {
  readonly key: string;
  readonly version: string;
}

/** Inputs of a period's plan. */
export interface PeerView {
  /** Returns the chunks of a version that reachable peers hold or will soon hold. Two peers may hold the same chunk. */
  chunksOf(version: string): readonly PeerChunk[];
  /**
   * Requests per period of all peers together, by key, most first. They count even for keys that no client requests
   * here.
   */
  readonly requests: ReadonlyMap<string, number>;
  /**
   * Returns the milliseconds x requests per period that all peers together save when this PoP caches exactly `chunks`
   * of an object instead of none. The value of a caching option includes it.
   */
  savedAtPeers(object: PlacedObject, chunks: readonly number[]): number;
}

/** The view of a PoP without peers, and of one that reaches none. */
export const NO_PEERS: PeerView = { chunksOf: () => [], requests: new Map(), savedAtPeers: () => 0 };

/** A peer that answers. */
export interface PeerReport {
  readonly name: string;
  /** Time to deliver a chunk from its cache, as measured from here. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** By version. */
  readonly held: ReadonlyMap<string, readonly number[]>;
  /** Undefined until its first digest has arrived. */
  readonly popularity: PopularityDigest | undefined;
}

/** Inputs of the view. */
export interface PeerViewOptions {
  readonly pop: string;
  readonly peers: readonly PeerReport[];
  /** Time to deliver a chunk from a PoP's own cache. */
  readonly cacheMs: number;
  /** Requests beyond k that readers make. */
  readonly delta: number;
  /** The price of a byte by region, as milliseconds of a reader's waiting. Default: all are free. */
  readonly costMsPerByte?: ReadonlyMap<string, number> | undefined;
}

/** Builds the view from the reports of all peers that answer. */
export function peerView(options: PeerViewOptions): PeerView {
  const { peers, delta } = options;
  const readers = peers.flatMap((peer) => readerOf(peer, options));
  const requests = new Map<string, number>();
  for (const { popular } of readers) {
    for (const [key, count] of popular) requests.set(key, (requests.get(key) ?? 0) + count);
  }
  const bindLate = memoizedLateBinding();
  const readMs = (sources: readonly (SourceLatency | undefined)[], k: number): number => {
    const near = sources.filter((source) => source !== undefined).toSorted((a, b) => a.meanMs - b.meanMs);
    return near.length < k ? DOWN_MS : bindLate(near.slice(0, k + delta), k).ms;
  };
  /** How each peer reads an object without this PoP: callers ask for one set of chunks after another. */
  const known = new Map<string, { readonly sources: (SourceLatency | undefined)[]; readonly ms: number }[]>();
  const without = (object: PlacedObject): { sources: (SourceLatency | undefined)[]; ms: number }[] => {
    let reads = known.get(object.version);
    if (!reads) {
      reads = readers.map((reader) => {
        const sources = reader.sourcesOf(object);
        return { sources, ms: readMs(sources, object.k) };
      });
      known.set(object.version, reads);
    }
    return reads;
  };
  return {
    chunksOf: (version) => peers.flatMap((peer) => chunksAt(peer, version)),
    requests: new Map([...requests].toSorted(([, a], [, b]) => b - a)),
    savedAtPeers(object, chunks) {
      let saved = 0;
      for (const [i, { sources, ms }] of without(object).entries()) {
        const { popular, toHere } = readers[i]!;
        const popularity = popular.get(object.key) ?? 0;
        if (popularity === 0) continue;
        const withThese = [...sources];
        for (const chunk of chunks) withThese[chunk] = nearer(withThese[chunk], toHere);
        saved += popularity * Math.max(0, ms - readMs(withThese, object.k));
      }
      return saved;
    },
  };
}

/** A peer as a reader: its sources without this PoP, by chunk index. */
interface Reader {
  readonly popular: ReadonlyMap<string, number>;
  readonly toHere: SourceLatency;
  sourcesOf(object: PlacedObject): (SourceLatency | undefined)[];
}

function readerOf(peer: PeerReport, { pop, peers, cacheMs, costMsPerByte }: PeerViewOptions): Reader[] {
  if (!peer.popularity) return [];
  const { popular, regions: itsRegions, peers: itsPeers } = peer.popularity;
  const regions = priced(itsRegions, costMsPerByte);
  const byName = new Map(itsPeers.filter(({ down }) => !down).map((place) => [place.name, place]));
  // Skip peers that report this PoP as unreachable. Until a peer has measured the link, assume this PoP's measurement.
  if (itsPeers.some(({ name, down }) => name === pop && down)) return [];
  const sourcesOf = (object: PlacedObject): (SourceLatency | undefined)[] => {
    const sources = chunkLatencies(object, regions);
    for (const chunk of peer.held.get(object.version) ?? []) sources[chunk] = { meanMs: cacheMs, sdMs: 0 };
    for (const third of peers) {
      const place = third.name === peer.name ? undefined : byName.get(third.name);
      if (!place) continue;
      for (const chunk of third.held.get(object.version) ?? []) sources[chunk] = nearer(sources[chunk], place);
    }
    return sources;
  };
  return [{ popular: new Map(popular), toHere: byName.get(pop) ?? peer, sourcesOf }];
}

function chunksAt({ name, meanMs, sdMs, held }: PeerReport, version: string): PeerChunk[] {
  return (held.get(version) ?? []).map((chunk) => ({ chunk, pop: name, meanMs, sdMs }));
}
