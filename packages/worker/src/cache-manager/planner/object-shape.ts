/** What planning needs to know of an object: its manifest without the hashes, which are most of it. Pure. */
import { chunkBytes, stripeCount, type Manifest } from "@agarose/core";
import { shardBytes } from "../../state/configuration.ts";

export interface ObjectShape {
  readonly key: string;
  readonly version: string;
  readonly k: number;
  readonly m: number;
  /** Region of each stored chunk. */
  readonly placement: readonly string[];
  readonly stripes: number;
  /** Bytes of one chunk, over all stripes: what keeping it weighs. */
  readonly chunkBytes: number;
  /** Bytes of one chunk in a stripe of the usual size: what one request transfers. */
  readonly shardBytes: number;
}

/** Undefined for an empty object, of which nothing can be cached. */
export function shapeOf(manifest: Manifest): ObjectShape | undefined {
  const stripes = stripeCount(manifest);
  if (stripes === 0) return undefined;
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

/** Whether chunks and weights of both are the same, so that what was learned of one holds for the other. */
export function sameShape(a: ObjectShape, b: ObjectShape): boolean {
  return a.k === b.k && a.m === b.m && a.chunkBytes === b.chunkBytes && a.placement.join() === b.placement.join();
}
