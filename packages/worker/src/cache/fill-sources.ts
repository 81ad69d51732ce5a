/**
 * The order in which a fill of the cache asks its sources: the cheapest first, and of those with one price the nearest.
 * A fill has time, so the price of a GB counts more than latency.
 */
import type { FetchPort } from "@agarose/core";
import { isFunctional, type Manifest } from "@agarose/core/format";
import { LATENCY_UNKNOWN, RegionSource, type ChunkSource, type LatencyEstimate } from "@agarose/core/sources";
import { deliveryMs, type RegionEstimate } from "@agarose/solver/planner";
import { shardBytes } from "../regions/region-latency.ts";
import type { ConfiguredRegion } from "../regions/region-settings.ts";

/** An object, and where its chunks are. */
export interface FillSourceOptions {
  readonly manifest: Manifest;
  readonly regions: readonly ConfiguredRegion[];
  readonly estimates: ReadonlyMap<string, RegionEstimate>;
  /** Peers that hold chunks of the object, except those that are known to fail. Default: none. */
  readonly peers?: readonly ChunkSource[] | undefined;
  readonly fetch: FetchPort;
}

/** Cloudflare charges nothing for what a Worker sends: https://developers.cloudflare.com/workers/platform/pricing/ */
const PEER_USD_PER_GB = 0;

/** The distance from one place in the order to the next: more than any decoding cost that a read plan adds. */
const PLACE_MS = 60_000;

interface Ranked {
  readonly usdPerGb: number;
  readonly meanMs: number;
  /** Returns the source for a read plan, with its place in the order as latency. */
  at(latency: LatencyEstimate): ChunkSource;
}

/** Returns all sources in the order in which to ask them. Of several peers with a chunk, only the nearest offers it. */
export function fillSources(options: FillSourceOptions): ChunkSource[] {
  const ranked = [...regions(options), ...peers(options)];
  return ranked
    .toSorted((a, b) => a.usdPerGb - b.usdPerGb || a.meanMs - b.meanMs)
    .map((source, place) => source.at({ meanMs: (place + 1) * PLACE_MS, sdMs: 0 }));
}

function regions({ manifest, regions: all, estimates, fetch }: FillSourceOptions): Ranked[] {
  return all.map(({ name, popUrl, egressUsdPerGb = 0 }) => ({
    usdPerGb: egressUsdPerGb,
    meanMs: deliveryMs(estimates.get(name) ?? LATENCY_UNKNOWN, shardBytes(manifest)),
    at: (latency) => new RegionSource({ manifest, region: { name, url: popUrl }, latency: () => latency, fetch }),
  }));
}

function peers({ manifest, peers: all = [] }: FillSourceOptions): Ranked[] {
  const byDistance = all.toSorted((a, b) => a.latency.meanMs - b.latency.meanMs);
  return byDistance.map((peer) => ({
    usdPerGb: PEER_USD_PER_GB,
    meanMs: peer.latency.meanMs,
    at: (latency) => ({
      id: peer.id,
      kind: peer.kind,
      latency,
      // No manifest has the hash of a functional chunk, so a fill computes it.
      has: (stripe, chunk) =>
        !isFunctional(manifest, chunk) && byDistance.find((other) => other.has(stripe, chunk)) === peer,
      fetch: (request) => peer.fetch(request),
    }),
  }));
}
