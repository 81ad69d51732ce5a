/**
 * How far regions are, as this PoP believes: estimates, and the latencies that reads and plans derive from them. Pure.
 */
import { LATENCY_UNKNOWN, type LatencyEstimate, type Manifest } from "@agarose/core";

/** What is known of one region, or of a peer PoP as a source of chunks. */
export interface RegionEstimate {
  readonly name: string;
  /** Time to the first byte in milliseconds: mean and standard deviation. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** Milliseconds that each further byte takes; 0 or absent while unknown. */
  readonly msPerByte?: number;
  readonly down: boolean;
}

/** A chunk from this PoP's own cache. */
export const EDGE_LATENCY: LatencyEstimate = { meanMs: 5, sdMs: 10 };
/** A source that is down counts as this far away in milliseconds: reads ask it last. */
export const DOWN_MS = 60_000;

/** Returns the estimate of region `name`, or the default for a region that was never measured. */
export function estimateOf(name: string, estimates: readonly RegionEstimate[]): RegionEstimate {
  return estimates.find((estimate) => estimate.name === name) ?? { name, ...LATENCY_UNKNOWN, down: false };
}

/** Returns the expected milliseconds until a source has delivered `bytes` bytes. */
export function deliveryMs(
  { meanMs, msPerByte = 0 }: Pick<RegionEstimate, "meanMs" | "msPerByte">,
  bytes: number,
): number {
  return meanMs + msPerByte * bytes;
}

/**
 * Returns the latency by which a read ranks a region that delivers `bytes` bytes. A region that is down, or whose
 * circuit breaker is open (`isOpen`), ranks last.
 */
export function latencyOf(
  estimates: readonly RegionEstimate[],
  region: string,
  isOpen = false,
  bytes = 0,
): LatencyEstimate {
  const estimate = estimateOf(region, estimates);
  const meanMs = deliveryMs(estimate, bytes);
  return { meanMs: estimate.down || isOpen ? Math.max(DOWN_MS, meanMs) : meanMs, sdMs: estimate.sdMs };
}

/** What a placement needs of an object. */
export interface Placed {
  readonly k: number;
  /** Region of each stored chunk. */
  readonly placement: readonly string[];
  /** Bytes of one chunk in a stripe of the usual size. */
  readonly shardBytes: number;
}

/**
 * Returns the latency of each stored chunk from its region, by chunk index. Chunks of regions that are down are
 * undefined; where fewer than k others remain, they are `DOWN_MS` away instead.
 */
export function chunkLatencies(
  { k, placement, shardBytes: bytes }: Placed,
  estimates: readonly RegionEstimate[],
): (LatencyEstimate | undefined)[] {
  const byName = new Map(estimates.map((estimate) => [estimate.name, estimate]));
  const up = placement.map((name) => {
    const region = byName.get(name);
    return region && !region.down ? { meanMs: deliveryMs(region, bytes), sdMs: region.sdMs } : undefined;
  });
  if (up.filter(Boolean).length >= k) return up;
  return up.map((latency) => latency ?? { meanMs: DOWN_MS, sdMs: 0 });
}

/**
 * Returns those of `chunks` that are data and whose region is down: recovered chunks (Liu et al., section V-B). Reads
 * use them instead of decoding.
 */
export function recoveredChunks(
  { k, placement }: Pick<Placed, "k" | "placement">,
  chunks: readonly number[],
  estimates: readonly RegionEstimate[],
): number[] {
  const down = new Set(estimates.filter((region) => region.down).map(({ name }) => name));
  return chunks.filter((chunk) => chunk < k && down.has(placement[chunk]!));
}

/** Returns the nearer of two sources. */
export function nearer<T extends { readonly meanMs: number }>(a: T | undefined, b: T): T {
  return a && a.meanMs <= b.meanMs ? a : b;
}

/** Returns the bytes of one chunk in a stripe of the usual size. */
export function shardBytes({ bytes, stripeBytes, k }: Pick<Manifest, "bytes" | "stripeBytes" | "k">): number {
  return Math.ceil(Math.min(bytes, stripeBytes) / k);
}
