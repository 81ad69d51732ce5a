/** What a caching policy sees and may do. One file per policy implements it; `registry.ts` lists them by name. */

/** The cache of one PoP, and what is known about the objects that could be in it. */
export interface PolicyCache {
  readonly objects: number;
  /** Chunks that make an object whole; d of them may be kept, 0..k. */
  readonly k: number;
  /** In the unit of `chunkWeight`. */
  readonly capacity: number;
  /** Weight of one chunk of each object. */
  readonly chunkWeight: Float64Array;
  readonly used: number;
  /** How many chunks of the object are kept now. */
  countOf(object: number): number;
  /** Milliseconds a read gets faster by keeping d chunks of the object, as latencies were last measured; >= 0. */
  savedMs(object: number, d: number): number;
  /** Keeps d chunks of the object from now on. The result must fit: shrink others first. */
  keep(object: number, d: number): void;
}

/** Decides what one cache keeps. All hooks are optional but `onRequest`; times never go back. */
export interface Policy {
  /** After each read at this PoP. */
  onRequest(object: number, seconds: number): void;
  /** At the end of every period. */
  onPeriod?(seconds: number): void;
  /** New latencies were measured: `savedMs` answers differently now. */
  onLatency?(seconds: number): void;
  /** For policies that know the future: the true request probability of every object, whenever it changes. */
  onTruth?(probability: Float64Array, seconds: number): void;
}

/** Replaces the cache's contents by d chunks of each object, shrinking before growing. */
export function applyConfiguration(cache: PolicyCache, count: ArrayLike<number>): void {
  for (let o = 0; o < cache.objects; o++) if (count[o]! < cache.countOf(o)) cache.keep(o, count[o]!);
  for (let o = 0; o < cache.objects; o++) if (count[o]! > 0) cache.keep(o, count[o]!);
}
