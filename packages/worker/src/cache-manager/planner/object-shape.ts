/** What planning needs of an object: its manifest without the hashes, which are most of it. Pure. */
import { chunkBytes, stripeCount, type Manifest } from "@agarose/core";
import { shardBytes } from "../../region-manager/region-latency.ts";

/** The shape of one version. */
export interface ObjectShape {
  readonly key: string;
  readonly version: string;
  readonly k: number;
  readonly m: number;
  /** Region of each stored chunk. */
  readonly placement: readonly string[];
  readonly stripes: number;
  /** Bytes of one chunk over all stripes: its weight in the cache. */
  readonly chunkBytes: number;
  /** Bytes of one chunk in a stripe of the usual size: what one request transfers. */
  readonly shardBytes: number;
}

/** Returns the shape, or undefined for an empty or inline object, which has no chunk to cache. */
export function shapeOf(manifest: Manifest): ObjectShape | undefined {
  const stripes = stripeCount(manifest);
  if (stripes === 0 || manifest.inline !== undefined) return undefined;
  const { key, version, k, m, placement } = manifest;
  return {
    key,
    version,
    k,
    m,
    placement,
    stripes,
    chunkBytes: chunkBytes(manifest),
    shardBytes: shardBytes(manifest),
  };
}

/** Returns whether both have the same chunks and weights, so that knowledge about one applies to the other. */
export function sameShape(a: ObjectShape, b: ObjectShape): boolean {
  return a.k === b.k && a.m === b.m && a.chunkBytes === b.chunkBytes && a.placement.join() === b.placement.join();
}
