/** What a caching policy sees and may do. One file per policy implements it; `registry.ts` lists them by name. */

import type { LatencyLaw } from "../options/latency.ts";

/**
 * The cache of one PoP, and what is known about the objects that could be in it. An object is a slot, 0 to objects - 1,
 * that stands for the same object until `Policy.forget`; a slot that stands for none is never asked for, saves nothing
 * and has any weight and k of at least 1.
 */
export interface PolicyCache {
  readonly objects: number;
  /** In the unit of `chunkWeight`. */
  readonly capacity: number;
  /** Weight of one chunk of each object, above 0. */
  readonly chunkWeight: Float64Array;
  readonly used: number;
  /** Chunks that make the object whole; d of them may be kept, 0..k. */
  kOf(object: number): number;
  /** How many chunks of the object are kept now. */
  countOf(object: number): number;
  /** Milliseconds a read gets faster by keeping d chunks of the object, 0..k, as latencies were last measured; >= 0. */
  savedMs(object: number, d: number): number;
  /** Keeps d chunks of the object from now on. The result must fit: shrink others first. */
  keep(object: number, d: number): void;
  /** Missing where nothing is known of it but what it takes to read, `savedMs`. */
  readonly storage?: StorageView;
}

/** The regions behind a cache, for a policy that reckons with how busy they are. */
export interface StorageView {
  /** How long a chunk takes from each region, in ms, as last measured. */
  readonly latency: readonly LatencyLaw[];
  /** Share of the time, 0 to below 1, that a region is busy with the present reads. */
  readonly utilization: number;
  /** The region of every chunk of the object that a read may ask for now. */
  regionsOf(object: number): readonly number[];
}

/**
 * Decides what one cache keeps. Times never go back. What the cache holds is asked of the cache, never remembered alone: it
 * may have lost some, or hold what another policy chose.
 */
export interface Policy {
  /** After each read at this PoP. */
  onRequest(object: number, seconds: number): void;
  /** At the end of every period. */
  onPeriod?(seconds: number): void;
  /** New latencies were measured: `savedMs` answers differently now. */
  onLatency?(seconds: number): void;
  /** For policies that know the future: the true request probability of every object, whenever it changes. */
  onTruth?(probability: Float64Array, seconds: number): void;
  /** The slot stands for another object now, of which the cache speaks already and keeps nothing: drops what is known of it. */
  forget?(object: number): void;
  /**
   * All that must outlive this instance: `createPolicy` makes an instance of it that decides exactly as this one would
   * have, over a cache with the same contents. Missing in a policy that remembers nothing.
   */
  snapshot?(): Uint8Array;
}

/** Replaces the cache's contents by d chunks of each object, shrinking before growing. */
export function applyConfiguration(cache: PolicyCache, count: ArrayLike<number>): void {
  for (let o = 0; o < cache.objects; o++) if (count[o]! < cache.countOf(o)) cache.keep(o, count[o]!);
  for (let o = 0; o < cache.objects; o++) if (count[o]! > 0) cache.keep(o, count[o]!);
}

/** Objects of which the cache keeps something. */
export function keptObjects(cache: PolicyCache): number[] {
  const kept: number[] = [];
  for (let o = 0; o < cache.objects; o++) if (cache.countOf(o) > 0) kept.push(o);
  return kept;
}
