/**
 * The interface of a caching policy. Each file in `policies/` implements one; `policies/registry.ts` lists them by
 * name.
 */
import type { LatencyLaw } from "../options/latency.ts";

/**
 * The cache of one PoP, and what the policy may know about the objects that could be in it. Objects are slots numbered
 * 0 to `objects` - 1. A slot means the same object until `Policy.forget`. An empty slot gets no requests, saves
 * nothing, and has any weight and any k of at least 1.
 */
export interface PolicyCache {
  readonly objects: number;
  /** Most weight that fits, in the unit of `chunkWeight`. */
  readonly capacity: number;
  /** Weight of one chunk of each object, above 0. */
  readonly chunkWeight: Float64Array;
  /** Weight of what the cache keeps now. */
  readonly used: number;
  /** Chunks that a read of the object needs; the cache may keep 0..k of them. */
  kOf(object: number): number;
  /** Chunks of the object that the cache keeps now, 0..k. */
  countOf(object: number): number;
  /**
   * Milliseconds that a read saves while the cache keeps d chunks, 0..k, by the latest latencies; >= 0. Saved money may
   * count as milliseconds.
   */
  savedMs(object: number, d: number): number;
  /** Keeps d chunks of the object, 0..k, from now on. The result must fit, so shrink others first. */
  keep(object: number, d: number): void;
  /** The cost of changing the object's chunks, as milliseconds of one read; missing where it is unknown. */
  readonly writeMs?: ((object: number) => number) | undefined;
  /** The regions behind the cache; missing where only `savedMs` is known. */
  readonly storage?: StorageView;
  /** The contents and reads of peers; missing in a cache without peers. */
  readonly peers?: PeerKnowledge;
}

/** A cache's knowledge of cooperating ones, for policies that use it. */
export interface PeerKnowledge {
  /** Chunks of the object that peers hold and this cache does not. */
  chunksBeside(object: number): number;
  /** Reads at the peers, lately; >= 0. */
  hits(object: number): number;
}

/** The regions behind a cache, for a policy that takes their load into account. */
export interface StorageView {
  /** Latency of a chunk from each region, as last measured. */
  readonly latency: readonly LatencyLaw[];
  /** Share of the time that a region is busy with the present reads, at least 0 and below 1. */
  readonly utilization: number;
  /** Region, as an index into `latency`, of every chunk of the object that is available now. */
  regionsOf(object: number): readonly number[];
}

/**
 * Decides what one cache keeps. `seconds` never decreases from call to call. A policy asks the cache what it holds,
 * because the cache may have lost chunks, or hold what another policy chose.
 */
export interface Policy {
  /** Whether it decides by this cache's reads alone. Otherwise reads at peers count like own ones. */
  readonly ownReadsOnly?: boolean;
  /** Called after each read at this PoP. */
  onRequest(object: number, seconds: number): void;
  /** Called at the end of every period. */
  onPeriod?(seconds: number): void;
  /** Called after new latencies were measured, which change `savedMs`. */
  onLatency?(seconds: number): void;
  /** Called when what the cache keeps of an object, or what that saves, has changed without the policy. */
  onChange?(object: number): void;
  /** For oracles only: receives the true request probability of every object whenever it changes. */
  onTruth?(probability: Float64Array, seconds: number): void;
  /**
   * Called when a slot becomes another object, after the cache has switched and keeps nothing of it: drops all state of
   * it.
   */
  forget?(object: number): void;
  /**
   * Returns the state of this instance. `createPolicy` restores it to an instance that makes the same decisions over a
   * cache with the same contents. Missing in a policy without state.
   */
  snapshot?(): Uint8Array;
}

/** Replaces the cache's contents by `count[o]` chunks of each object o, shrinking before growing. */
export function applyConfiguration(cache: PolicyCache, count: ArrayLike<number>): void {
  for (let o = 0; o < cache.objects; o++) if (count[o]! < cache.countOf(o)) cache.keep(o, count[o]!);
  for (let o = 0; o < cache.objects; o++) if (count[o]! > 0) cache.keep(o, count[o]!);
}

/** Returns the objects of which the cache keeps at least one chunk, ascending. */
export function keptObjects(cache: PolicyCache): number[] {
  const kept: number[] = [];
  for (let o = 0; o < cache.objects; o++) if (cache.countOf(o) > 0) kept.push(o);
  return kept;
}
