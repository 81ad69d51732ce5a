/**
 * Which chunks of which objects to cache: caching options (Agar, ICDCS'17, section IV) solved exactly. Pure.
 */
import { chunkBytes, stripeCount, type Manifest } from "@agarose/core";
import { cachingOptions, expectedReadMs, solveKnapsack, type CachingOption, type ChunkSource } from "@agarose/solver";
import { deliveryMs, shardBytes, type RegionEstimate } from "./configuration.ts";
import { NO_PEERS, type PeerView } from "./peers/peer-view.ts";

/** An object that was asked for. */
export interface PlanCandidate {
  readonly manifest: Manifest;
  /** Requests per period. */
  readonly popularity: number;
  /** Chunks of this version that are cached now. */
  readonly cached: readonly number[];
}

export interface CachePlanOptions {
  readonly candidates: readonly PlanCandidate[];
  readonly capacityBytes: number;
  readonly regions: readonly RegionEstimate[];
  /** Time to deliver a cached chunk. */
  readonly cacheMs: number;
  /** Requests beyond k that readers make. */
  readonly delta: number;
  /** Default: none. */
  readonly peers?: PeerView;
}

/** What one object should have in the cache: at least one chunk. */
export interface PlannedObject {
  readonly manifest: Manifest;
  readonly chunks: readonly number[];
  /** Milliseconds saved per period and byte: what to fill first. */
  readonly density: number;
}

/** When fewer than k chunks can be had, those of regions that are down count too, this far away. */
const DOWN_MS = 60_000;
/** A cached set stays while another of its size is better by less than this: estimates wobble, and writes cost. */
const WORTH_CHANGING = 0.05;

/** The exact optimum for these popularities and latencies, best use of a byte first. */
export function planCache(plan: CachePlanOptions): PlannedObject[] {
  const objects = plan.candidates
    .filter(({ manifest }) => stripeCount(manifest) > 0)
    .map((candidate) => ({ manifest: candidate.manifest, options: optionsOf(candidate, plan) }));
  const all = objects.flatMap(({ options }) => options);
  const start = new Uint32Array(objects.length + 1);
  for (const [i, { options }] of objects.entries()) start[i + 1] = start[i]! + options.length;
  const { choice } = solveKnapsack({
    capacity: plan.capacityBytes,
    start,
    weights: Float64Array.from(all, ({ weight }) => weight),
    values: Float64Array.from(all, ({ value }) => value),
  });
  const planned = objects.flatMap(({ manifest, options }, i) => {
    const option = options[choice[i]!];
    return option && option.value > 0
      ? [{ manifest, chunks: option.chunks, density: option.value / option.weight }]
      : [];
  });
  return planned.toSorted((a, b) => b.density - a.density);
}

function optionsOf({ manifest, popularity, cached }: PlanCandidate, plan: CachePlanOptions): CachingOption[] {
  const { k, m } = manifest;
  const { cacheMs, delta, peers = NO_PEERS } = plan;
  const sources = withPeers(chunkSources(manifest, plan.regions), peers.chunksOf(manifest.version));
  const options = cachingOptions({
    k,
    m,
    chunkBytes: chunkBytes(manifest),
    sources,
    cacheMs,
    delta,
    popularity,
  });
  const placed = { ...manifest, shardBytes: shardBytes(manifest) };
  const uncachedMs = readMs(sources, [], manifest, plan);
  return options.map((alone) => {
    const chunks = alone.d === k ? dataChunks(k) : alone.chunks;
    const option = { ...alone, chunks, value: alone.value + peers.savedAtPeers(placed, chunks) };
    if (option.d !== cached.length) return option;
    const saved = popularity * Math.max(0, uncachedMs - readMs(sources, cached, manifest, plan));
    const value = saved + peers.savedAtPeers(placed, cached);
    return value >= (1 - WORTH_CHANGING) * option.value ? { ...option, chunks: cached, value } : option;
  });
}

/** An object that is cached in whole is cached as data: distance matters no more, and data needs no codec. */
function dataChunks(k: number): number[] {
  return Array.from({ length: k }, (_, chunk) => chunk);
}

function chunkSources(manifest: Manifest, regions: readonly RegionEstimate[]): ChunkSource[] {
  const { k, placement } = manifest;
  const bytes = shardBytes(manifest);
  const byName = new Map(regions.map((region) => [region.name, region]));
  const all = placement.map((name, chunk): ChunkSource & { down: boolean } => {
    const region = byName.get(name);
    if (!region || region.down) return { chunk, meanMs: DOWN_MS, sdMs: 0, down: true };
    return { chunk, meanMs: deliveryMs(region, bytes), sdMs: region.sdMs, down: false };
  });
  const up = all.filter(({ down }) => !down);
  return up.length >= k ? up : all;
}

/** The nearest source of each chunk: its region, or a peer that holds it. */
function withPeers(sources: readonly ChunkSource[], held: readonly ChunkSource[]): ChunkSource[] {
  const nearest = new Map(sources.map((source) => [source.chunk, source]));
  for (const source of held) {
    if (source.meanMs < (nearest.get(source.chunk)?.meanMs ?? Number.POSITIVE_INFINITY)) {
      nearest.set(source.chunk, source);
    }
  }
  return [...nearest.values()];
}

/** Expected time of a read while exactly the chunks `cached` are cached. */
function readMs(
  sources: readonly ChunkSource[],
  cached: readonly number[],
  { k }: Manifest,
  { cacheMs, delta }: CachePlanOptions,
): number {
  if (cached.length >= k) return cacheMs;
  const remote = sources.filter(({ chunk }) => !cached.includes(chunk)).toSorted((a, b) => a.meanMs - b.meanMs);
  return expectedReadMs([...cached.map(() => ({ meanMs: cacheMs })), ...remote.slice(0, k - cached.length + delta)], k);
}
