/**
 * What peers save by chunks in this PoP's cache, and theirs as sources: the view that a period plans by. Pure.
 *
 * All PoPs value a chunk by the same sum, the time saved at every PoP, so a change that pays for one of them pays for all
 * together, and PoPs that change in turn come to rest (block-coordinate ascent).
 */
import { expectedReadMs, type LatencyLaw } from "@agarose/solver";
import { deliveryMs, type RegionEstimate } from "../state/configuration.ts";
import type { Outlook } from "./peer-message.ts";
import type { PeerChunk, PeerView, PlacedObject } from "./peer-view.ts";

/** A peer that answers. */
export interface PeerReport {
  readonly name: string;
  /** A chunk from its cache, as measured from here. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** By version. */
  readonly held: ReadonlyMap<string, readonly number[]>;
  /** Undefined until its first digest has come. */
  readonly outlook: Outlook | undefined;
}

export interface PeerViewOptions {
  readonly pop: string;
  readonly peers: readonly PeerReport[];
  /** A chunk from a PoP's own cache, at that PoP. */
  readonly cacheMs: number;
  /** Requests beyond k that readers make. */
  readonly delta: number;
}

/** A region that is down counts as this far away where fewer than k chunks can be had without it. */
const DOWN_MS = 60_000;

export function peerView({ pop, peers, cacheMs, delta }: PeerViewOptions): PeerView {
  const readers = peers.flatMap((peer) => readerOf(peer, peers, pop, cacheMs));
  const requests = new Map<string, number>();
  for (const { popular } of readers) {
    for (const [key, count] of popular) requests.set(key, (requests.get(key) ?? 0) + count);
  }
  const readMs = memoized(delta);
  return {
    chunksOf: (version) => peers.flatMap((peer) => chunksAt(peer, version)),
    requests: new Map([...requests].toSorted(([, a], [, b]) => b - a)),
    savedAtPeers(object, chunks) {
      let saved = 0;
      for (const reader of readers) {
        const popularity = reader.popular.get(object.key) ?? 0;
        if (popularity === 0) continue;
        const without = reader.sourcesOf(object);
        const withThese = [...without];
        for (const chunk of chunks) withThese[chunk] = nearer(withThese[chunk], reader.toHere);
        saved += popularity * Math.max(0, readMs(without, object.k) - readMs(withThese, object.k));
      }
      return saved;
    },
  };
}

/** A peer as somebody who reads: where it gets chunks from without us, by chunk index. */
interface Reader {
  readonly popular: ReadonlyMap<string, number>;
  readonly toHere: LatencyLaw;
  sourcesOf(object: PlacedObject): (LatencyLaw | undefined)[];
}

function readerOf(peer: PeerReport, peers: readonly PeerReport[], pop: string, cacheMs: number): Reader[] {
  if (!peer.outlook) return [];
  const { popular, regions, peers: itsPeers } = peer.outlook;
  const byName = new Map(itsPeers.filter(({ down }) => !down).map((place) => [place.name, place]));
  // It says itself that it does not reach us; as long as it has not measured, the way is as long as it is from here.
  if (itsPeers.some(({ name, down }) => name === pop && down)) return [];
  const sourcesOf = (object: PlacedObject): (LatencyLaw | undefined)[] => {
    const sources = regionSources(object, regions);
    for (const chunk of peer.held.get(object.version) ?? []) sources[chunk] = { meanMs: cacheMs };
    for (const third of peers) {
      const place = third.name === peer.name ? undefined : byName.get(third.name);
      if (!place) continue;
      for (const chunk of third.held.get(object.version) ?? []) sources[chunk] = nearer(sources[chunk], place);
    }
    return sources;
  };
  return [{ popular: new Map(popular), toHere: byName.get(pop) ?? peer, sourcesOf }];
}

function regionSources(object: PlacedObject, regions: readonly RegionEstimate[]): (LatencyLaw | undefined)[] {
  const byName = new Map(regions.map((region) => [region.name, region]));
  const up = object.placement.map((name) => {
    const region = byName.get(name);
    return region && !region.down ? { meanMs: deliveryMs(region, object.shardBytes), sdMs: region.sdMs } : undefined;
  });
  const enough = up.filter(Boolean).length >= object.k;
  return enough ? up : up.map((source) => source ?? { meanMs: DOWN_MS });
}

function chunksAt({ name, meanMs, sdMs, held }: PeerReport, version: string): PeerChunk[] {
  return (held.get(version) ?? []).map((chunk) => ({ chunk, pop: name, meanMs, sdMs }));
}

function nearer(a: LatencyLaw | undefined, b: LatencyLaw): LatencyLaw {
  return a && a.meanMs <= b.meanMs ? a : b;
}

/** Expected time of a read from these sources. Objects that are placed alike are read alike, so few are computed. */
function memoized(delta: number): (sources: readonly (LatencyLaw | undefined)[], k: number) => number {
  const known = new Map<string, number>();
  return (sources, k) => {
    const best = sources
      .filter((source) => source !== undefined)
      .toSorted((a, b) => a.meanMs - b.meanMs)
      .slice(0, k + delta);
    const name = `${k}:${best.map(({ meanMs, sdMs }) => `${meanMs}+${sdMs ?? 0}`).join()}`;
    let ms = known.get(name);
    if (ms === undefined) known.set(name, (ms = best.length < k ? DOWN_MS : expectedReadMs(best, k)));
    return ms;
  };
}
