/** The effort of rewriting an object, before anything is done. */
import { chunkBytes, type Manifest } from "@agarose/core/format";
import type { Config, RegionConfig } from "../config/config.ts";
import { currentNames } from "../buckets/region-names.ts";
import type { ObjectLayout } from "../layout/object-layout.ts";

/** Sums over objects. */
export interface Effort {
  /** Bytes of objects that are read, without requests that are made twice because a region is slow. */
  readonly readBytes: number;
  /** Bytes of chunks that are written. */
  readonly writtenBytes: number;
  /** Requests to regions, the fewest that it takes. */
  readonly requests: number;
  /** For reading, by `egressUsdPerGb`, if the dearest chunks are read: no more than this. Requests are not priced. */
  readonly readUsdMax: number;
  /** How much more, or less, the chunks cost to store, by `storageUsdPerGbMonth`. */
  readonly usdPerMonth: number;
}

/** None. */
export const NO_EFFORT: Effort = { readBytes: 0, writtenBytes: 0, requests: 0, readUsdMax: 0, usdPerMonth: 0 };

/** To each region: a look, a claim, a manifest, and the removal of the claim. */
export const COMMIT_REQUESTS = 4;
const GB = 1e9;
/** A read asks a region for so much of an object in one request at most. */
const READ_BYTES_MAX = 16 * 1024 * 1024;

/** The effort of rewriting an object by `layout`. */
export function effortOf(manifest: Manifest, layout: ObjectLayout, { regions, stripeBytes }: Config): Effort {
  const { bytes, inline, k } = manifest;
  const placement = currentNames(manifest.placement, regions);
  const isStored = bytes > 0 && inline === undefined;
  const before = isStored ? chunkBytes(manifest) : 0;
  const written = bytes > 0 && !layout.inline ? chunkBytes({ k: layout.k, bytes, stripeBytes }) : 0;
  const reads = isStored ? k * Math.ceil(bytes / READ_BYTES_MAX) : 0;
  const writes = written > 0 ? layout.placement.length : 0;
  const prices = new Map(regions.map((region) => [region.name, region]));
  const egress = placement.map((name) => prices.get(name)?.egressUsdPerGb ?? 0).toSorted((a, b) => b - a);
  const storage = (names: readonly string[], each: number): number =>
    names.reduce((sum, name) => sum + (each / GB) * storagePrice(prices.get(name)), 0);
  return {
    readBytes: isStored ? bytes : 0,
    writtenBytes: written * layout.placement.length,
    requests: reads + writes + COMMIT_REQUESTS * regions.length,
    readUsdMax: egress.slice(0, k).reduce((sum, usd) => sum + (before / GB) * usd, 0),
    usdPerMonth: storage(layout.placement, written) - storage(placement, before),
  };
}

function storagePrice(region: RegionConfig | undefined): number {
  return region?.storageUsdPerGbMonth ?? 0;
}
