/**
 * Parity by popularity (EC-Cache, section 6.1): the rows that the caches of PoPs give to popular objects within their
 * capacity, and the extra rows that a scrub stores in buckets near them. PoPs without peers plan by the true
 * popularity.
 */
import { choosePlaces } from "@agarose/solver/extra-places";
import { Planner } from "@agarose/solver/internal/planner/planner";
import type { RegionEstimate } from "@agarose/solver/internal/options/sources";
import type { ObjectShape } from "@agarose/solver/internal/planner/object-shape";
import { NO_PEERS } from "@agarose/solver/internal/cooperation/peer-view";
import { estimateSavings } from "@agarose/solver/internal/planner/savings";

/** Objects, and the PoPs that read them. */
interface PopularRowsStudy {
  /** Milliseconds to each region, of each PoP. The nearest regions on average are the first ones. */
  readonly pops: readonly Readonly<Record<string, number>>[];
  /** Deviation as a share of the mean. */
  readonly deviation: number;
  readonly cacheMs: number;
  /** Objects that the cache of each PoP has room for. */
  readonly capacityObjects: number;
  readonly k: number;
  readonly m: number;
  /** Bytes of extra rows, as a share of all stored bytes. */
  readonly storage: number;
  readonly objects: number;
  readonly zipfExponent: number;
}

/** The average of the readers of all PoPs. */
interface PopularRows {
  /** Extra rows, as a share of the stored ones. */
  readonly moreStorage: number;
  readonly hot: number;
  /** Milliseconds of a read without any cache, and with it. */
  readonly withoutMs: number;
  readonly withMs: number;
}

const CHUNK_BYTES = 1_000;
/** Requests that the planner replays: many, so that rounding hardly matters. */
const REQUESTS = 20_000;
const DELTA = 1;

/** Plans the caches, stores extra rows by what they have, plans again, and returns what reads take. */
export function popularRows(study: PopularRowsStudy): PopularRows {
  const { pops, deviation, k, m, storage, objects, zipfExponent } = study;
  const names = Object.keys(pops[0]!);
  const weights = Array.from({ length: objects }, (_, rank) => (rank + 1) ** -zipfExponent);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const keys = weights.map((_, o) => `o${o}`);
  const requests = new Map(keys.map((key, o) => [key, Math.round((REQUESTS * weights[o]!) / total)]));
  const placement = Array.from({ length: k + m }, (_, row) => names[row % names.length]!);
  const shapesWith = (extra: ReadonlyMap<string, readonly string[]>): ObjectShape[] =>
    keys.map((key) => {
      const bytes = { chunkBytes: CHUNK_BYTES, shardBytes: CHUNK_BYTES };
      return { key, version: key, k, m, placement: [...placement, ...(extra.get(key) ?? [])], stripes: 1, ...bytes };
    });
  const regionsOf = (latencyMs: Readonly<Record<string, number>>): RegionEstimate[] =>
    Object.entries(latencyMs).map(([name, meanMs]) => ({ name, meanMs, sdMs: deviation * meanMs, down: false }));
  const plain = shapesWith(new Map());
  const extra = choosePlaces({
    objects: keys.map((key) => ({ key, k, chunkBytes: CHUNK_BYTES, placement, extra: [] })),
    readers: pops.map((latencyMs) => {
      const regions = regionsOf(latencyMs);
      const cached = cachedChunks(plain, requests, regions, study);
      return {
        requests,
        cached: new Map(Array.from(cached, ([key, chunks]) => [key, chunks.length])),
        latencies: new Map(regions.map((region) => [region.name, region])),
      };
    }),
    regions: names,
    bytesMax: storage * objects * (k + m) * CHUNK_BYTES,
  });
  const shapes = shapesWith(extra);
  const reads = pops.map((latencyMs) => {
    const regions = regionsOf(latencyMs);
    const view = { regions, peers: NO_PEERS, cacheMs: study.cacheMs, delta: DELTA };
    const msWith = (chunksOf: (key: string) => readonly number[]): number =>
      estimateSavings(
        shapes.map((object, o) => ({ object, popularity: weights[o]!, chunks: chunksOf(object.key) })),
        view,
      )!.readMs;
    const cached = cachedChunks(shapes, requests, regions, study);
    return { withoutMs: msWith(() => []), withMs: msWith((key) => cached.get(key) ?? []) };
  });
  const mean = (of: "withoutMs" | "withMs"): number => reads.reduce((sum, read) => sum + read[of], 0) / pops.length;
  const rows = [...extra.values()].reduce((sum, places) => sum + places.length, 0);
  return {
    moreStorage: rows / (objects * (k + m)),
    hot: extra.size,
    withoutMs: mean("withoutMs"),
    withMs: mean("withMs"),
  };
}

/** The chunks that the cache of a PoP has of each object, by key. */
function cachedChunks(
  shapes: readonly ObjectShape[],
  requests: ReadonlyMap<string, number>,
  regions: readonly RegionEstimate[],
  { cacheMs, capacityObjects, k, objects }: PopularRowsStudy,
): ReadonlyMap<string, readonly number[]> {
  const capacityBytes = capacityObjects * k * CHUNK_BYTES;
  const options = { policy: "exact", capacityBytes, cacheMs, delta: DELTA, functionalPop: 0, slots: objects };
  const { planned } = new Planner(options).plan({
    nowMs: 60_000,
    requests: Array.from(requests, ([key, count]) => ({ key, requests: count, popularity: count })),
    objects: new Map(shapes.map((shape) => [shape.key, shape])),
    regions,
    ledger: new Map(),
  });
  return new Map(planned.map((kept) => [kept.object.key, kept.chunks]));
}
