/** What is stored: how large the objects are and in which regions their chunks lie. */

import type { Random } from "../random.ts";
import type { Scenario } from "./scenario.ts";

/**
 * Regions of an object's chunks. Round-robin puts chunk c in region c for every object, as `put` does; whole copies, which would
 * all crowd into the first regions that way, start one region further with each object.
 */
export function placeChunks(
  { regions, bucketsPerRegion, placement }: Scenario,
  chunks: number,
  first: number,
  random: Random,
): Int32Array {
  if (placement === "round-robin") return Int32Array.from({ length: chunks }, (_, c) => (first + c) % regions.length);
  const buckets = Array.from({ length: regions.length * bucketsPerRegion }, (_, bucket) => bucket % regions.length);
  return Int32Array.from(random.shuffle(buckets).slice(0, chunks));
}

/** The object size by which `capacityChunks` is measured: the one size, the median, or the mean of a list. */
export function nominalBytes({ objects }: Scenario): number {
  const { bytes } = objects;
  if (typeof bytes === "number") return bytes;
  if (!(bytes instanceof Float64Array)) return bytes.medianBytes;
  return Math.ceil(bytes.reduce((sum, size) => sum + size, 0) / bytes.length);
}

export function objectBytes({ objects }: Scenario, random: Random): Float64Array {
  const { bytes, count } = objects;
  if (bytes instanceof Float64Array) return bytes;
  const draw = (): number => {
    if (typeof bytes === "number") return bytes;
    return Math.max(1, Math.round(bytes.medianBytes * Math.exp(bytes.sigma * random.normal())));
  };
  return Float64Array.from({ length: count }, draw);
}
