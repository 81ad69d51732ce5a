/** What planning needs of an object: its manifest without the hashes, which are most of it. Pure. */
import { chunkBytes, stripeCount, type Manifest } from "@agarose/core";
import type { ObjectShape } from "@agarose/solver";
import { shardBytes } from "../../region-manager/region-latency.ts";

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
