/**
 * Whom a fill of the cache asks first: the cheapest source, and of those that cost the same, the nearest. A fill has time, so
 * what a GB costs comes before how long it takes.
 */
import {
  isFunctional,
  LATENCY_UNKNOWN,
  RegionSource,
  type ChunkSource,
  type Clock,
  type FetchPort,
  type LatencyEstimate,
  type Manifest,
} from "@agarose/core";
import { deliveryMs, shardBytes, type RegionEstimate } from "../state/configuration.ts";
import type { Region } from "../http/settings.ts";

export interface FillSourceOptions {
  readonly manifest: Manifest;
  readonly regions: readonly Region[];
  readonly estimates: ReadonlyMap<string, RegionEstimate>;
  /** Peers that hold chunks of the object and are not known to fail. Default: none. */
  readonly peers?: readonly ChunkSource[] | undefined;
  readonly fetch: FetchPort;
  readonly clock: Clock;
}

/** Cloudflare charges nothing for what a Worker sends: https://developers.cloudflare.com/workers/platform/pricing/ */
const PEER_USD_PER_GB = 0;

/** From one place to the next: more than any cost of decoding, which a read plan adds. */
const PLACE_MS = 60_000;

interface Ranked {
  readonly usdPerGb: number;
  readonly meanMs: number;
  /** The source as a read plan sees it, with its place in the order as latency. */
  at(latency: LatencyEstimate): ChunkSource;
}

/** All sources in the order in which to ask them; of the peers that hold a chunk, the nearest stands for all of them. */
export function fillSources(options: FillSourceOptions): ChunkSource[] {
  const ranked = [...regions(options), ...peers(options)];
  return ranked
    .toSorted((a, b) => a.usdPerGb - b.usdPerGb || a.meanMs - b.meanMs)
    .map((source, place) => source.at({ meanMs: (place + 1) * PLACE_MS, sdMs: 0 }));
}

function regions({ manifest, regions: all, estimates, fetch, clock }: FillSourceOptions): Ranked[] {
  return all.map(({ name, popUrl, egressUsdPerGb = 0 }) => ({
    usdPerGb: egressUsdPerGb,
    meanMs: deliveryMs(estimates.get(name) ?? LATENCY_UNKNOWN, shardBytes(manifest)),
    at: (latency) =>
      new RegionSource({ manifest, region: { name, url: popUrl }, latency: () => latency, fetch, clock }),
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
      // No manifest has the hash of a functional chunk, so a fill computes those itself.
      has: (stripe, chunk) =>
        !isFunctional(manifest, chunk) && byDistance.find((other) => other.has(stripe, chunk)) === peer,
      fetch: (request) => peer.fetch(request),
    }),
  }));
}
