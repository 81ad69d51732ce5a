/** The stored objects: their sizes, and the regions of their chunks. */
import type { Random } from "../../random.ts";
import type { Scenario } from "./scenario.ts";

/**
 * Returns the region of each of an object's chunks. Round-robin puts chunk c in region c for every object, as `put`
 * does. Whole copies start one region further with each object (`first`), or all would be in the first regions.
 */
function placeChunks(
  { regions, bucketsPerRegion, placement }: Scenario,
  chunks: number,
  first: number,
  random: Random,
): Int32Array {
  if (placement === "round-robin") return Int32Array.from({ length: chunks }, (_, c) => (first + c) % regions.length);
  const buckets = Array.from({ length: regions.length * bucketsPerRegion }, (_, bucket) => bucket % regions.length);
  return Int32Array.from(random.shuffle(buckets).slice(0, chunks));
}

/**
 * Returns the object size in bytes that defines a chunk of `capacityChunks`: the common size, the median, or the mean
 * of a list.
 */
export function nominalBytes({ objects }: Scenario): number {
  const { bytes } = objects;
  if (typeof bytes === "number") return bytes;
  if (!(bytes instanceof Float64Array)) return bytes.medianBytes;
  return Math.ceil(bytes.reduce((sum, size) => sum + size, 0) / bytes.length);
}

/** Returns the size of every object in bytes. */
export function objectBytes({ objects }: Scenario, random: Random): Float64Array {
  const { bytes, count } = objects;
  if (bytes instanceof Float64Array) return bytes;
  const draw = (): number => {
    if (typeof bytes === "number") return bytes;
    return Math.max(1, Math.round(bytes.medianBytes * Math.exp(bytes.sigma * random.normal())));
  };
  return Float64Array.from({ length: count }, draw);
}

/** Objects whose chunks are equally far and equally large behave alike and share all tables. */
export interface Group {
  readonly region: Int32Array;
  /** Per PoP: milliseconds to transfer one chunk from a region. */
  readonly transferMs: Float64Array;
  /** Per PoP: milliseconds to transfer one chunk from its own cache or a peer's. */
  readonly cacheTransferMs: Float64Array;
  /** Milliseconds that one chunk takes of a reader's line. */
  readonly lineMs: number;
}

/** Sizes within this part of an octave count as equal, so that there are few groups. */
const SIZES_PER_OCTAVE = 64;

/** Places every object; returns the groups, and the group of each object. */
export function groupObjects(
  scenario: Scenario,
  chunks: number,
  isReplicated: boolean,
  chunkBytes: Float64Array,
  random: Random,
): { readonly groups: readonly Group[]; readonly groupOf: Int32Array } {
  const groups: Group[] = [];
  const known = new Map<string, number>();
  const { mbitPerSecond: lineMbit } = scenario.client;
  const isSized =
    Number.isFinite(lineMbit) ||
    scenario.pops.some((pop) => (pop.regionMbitPerSecond ?? pop.cacheMbitPerSecond) !== undefined);
  const groupOf = Int32Array.from(chunkBytes, (bytes, object) => {
    const region = placeChunks(scenario, chunks, isReplicated ? object : 0, random);
    const size = isSized ? 2 ** (Math.round(Math.log2(bytes) * SIZES_PER_OCTAVE) / SIZES_PER_OCTAVE) : 0;
    const key = `${region.join()}/${size}`;
    let group = known.get(key);
    if (group === undefined) {
      group = groups.length;
      known.set(key, group);
      const transferMs = (mbitPerSecond: number | undefined): number =>
        mbitPerSecond ? (size * 8) / (mbitPerSecond * 1000) : 0;
      groups.push({
        region,
        transferMs: Float64Array.from(scenario.pops, ({ regionMbitPerSecond }) => transferMs(regionMbitPerSecond)),
        cacheTransferMs: Float64Array.from(scenario.pops, ({ cacheMbitPerSecond }) => transferMs(cacheMbitPerSecond)),
        lineMs: transferMs(lineMbit),
      });
    }
    return group;
  });
  return { groups, groupOf };
}
