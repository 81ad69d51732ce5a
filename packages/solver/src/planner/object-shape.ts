/** The fields of an object that planning needs. */

/** The shape of one version. */
export interface ObjectShape {
  readonly key: string;
  readonly version: string;
  readonly k: number;
  readonly m: number;
  /** Region of each stored chunk. Those beyond k + m are extra rows of the code, which come and go. */
  readonly placement: readonly string[];
  readonly stripes: number;
  /** Bytes of one chunk over all stripes: its weight in the cache. */
  readonly chunkBytes: number;
  /** Bytes of one chunk in a stripe of the usual size: what one request transfers. */
  readonly shardBytes: number;
}

/** Returns whether both have the same chunks and weights, so that knowledge about one applies to the other. */
export function sameShape(a: ObjectShape, b: ObjectShape): boolean {
  return a.k === b.k && a.m === b.m && a.chunkBytes === b.chunkBytes && a.placement.join() === b.placement.join();
}

/** The cached chunks of a version, and the wanted ones. */
export interface CachedObject {
  readonly stripes: number;
  /** Chunks that all stripes have. */
  readonly chunks: readonly number[];
  /** Chunks that every stripe shall have; empty while the object is being evicted. */
  readonly target: readonly number[];
  /** Stripes 0 to `done` - 1 have the target already. */
  readonly done: number;
}
