/** How far the sources of an object's chunks are: estimates of regions, and what they give for each stored chunk. */
import { busyChargeMs, type AskedSource } from "./late-binding.ts";

/** Estimates of one region, or of a peer PoP as a source of chunks. */
export interface RegionEstimate {
  readonly name: string;
  /** Time to the first byte in milliseconds: mean and standard deviation. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** Milliseconds that each further byte takes; 0 or absent while unknown. */
  readonly msPerByte?: number;
  readonly down: boolean;
  /** The price of reading a byte there, as milliseconds of a reader's waiting. Default: 0. */
  readonly costMsPerByte?: number;
  /** Share of the time that it is busy, where that is known: requests beyond k are charged for it. Default: 0. */
  readonly utilization?: number | undefined;
}

/** The latency of one source, both numbers known, and what asking it costs. */
export interface SourceLatency extends AskedSource {
  readonly sdMs: number;
}

/** Returns the estimates with the price of a byte, by name of the region. */
export function priced(
  estimates: readonly RegionEstimate[],
  costMsPerByte: ReadonlyMap<string, number> = new Map(),
): readonly RegionEstimate[] {
  if (costMsPerByte.size === 0) return estimates;
  return estimates.map((estimate) => ({ ...estimate, costMsPerByte: costMsPerByte.get(estimate.name) ?? 0 }));
}

/** A change of mean and deviation together that matters, as a share of the mean. */
const WORTH_NOTICING = 0.05;

/** The estimates to plan by: those of `before`, until a region changes by more than estimates fluctuate. */
export function holdRegions(
  before: readonly RegionEstimate[],
  measured: readonly RegionEstimate[],
): readonly RegionEstimate[] {
  const known = new Map(before.map((region) => [region.name, region]));
  const held = measured.map((region) => {
    const old = known.get(region.name);
    return old && !hasChanged(old, region) ? old : region;
  });
  const isSame = held.length === before.length && held.every((region, i) => region === before[i]);
  return isSame ? before : held;
}

function hasChanged(old: RegionEstimate, now: RegionEstimate): boolean {
  if (old.down !== now.down) return true;
  const change = Math.abs(now.meanMs - old.meanMs) + Math.abs(now.sdMs - old.sdMs);
  return change > WORTH_NOTICING * old.meanMs;
}

/** A source that is down counts as this far away in milliseconds: reads ask it last. */
export const DOWN_MS = 60_000;

/** Returns the expected milliseconds until a source has delivered `bytes` bytes. */
export function deliveryMs(
  { meanMs, msPerByte = 0 }: Pick<RegionEstimate, "meanMs" | "msPerByte">,
  bytes: number,
): number {
  return meanMs + msPerByte * bytes;
}

/** The fields of an object that a placement needs. */
export interface Placed {
  readonly k: number;
  readonly placement: readonly string[];
  /** Bytes of one chunk in a stripe of the usual size. */
  readonly shardBytes: number;
  /** Bytes of one chunk over all stripes: what a read of the object pays for. */
  readonly chunkBytes: number;
}

/**
 * Returns the latency of each stored chunk from its region, by chunk index. Chunks of regions that are down are
 * undefined; where fewer than k others remain, they are `DOWN_MS` away instead.
 */
export function chunkLatencies(
  { k, placement, shardBytes: bytes, chunkBytes }: Placed,
  estimates: readonly RegionEstimate[],
): (SourceLatency | undefined)[] {
  const byName = new Map(estimates.map((estimate) => [estimate.name, estimate]));
  const placed = placement.map((name) => byName.get(name));
  const distances = placed.flatMap((region) => (region && !region.down ? [deliveryMs(region, bytes)] : []));
  const neededMs = distances.toSorted((a, b) => a - b)[k - 1]!;
  const up = placed.map((region) => {
    if (!region || region.down) return undefined;
    const { sdMs, costMsPerByte = 0, utilization = 0 } = region;
    const meanMs = deliveryMs(region, bytes);
    const extraMs = meanMs > neededMs ? 0 : busyChargeMs(meanMs, k, utilization);
    return { meanMs, sdMs, costMs: costMsPerByte * chunkBytes, extraMs };
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

/** Returns whether a chunk is a row of the code beyond k + m: a functional chunk (Sprout, section III). */
export function isFunctional({ k, m }: { readonly k: number; readonly m: number }, chunk: number): boolean {
  return chunk >= k + m;
}
