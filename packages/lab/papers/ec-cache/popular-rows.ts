/**
 * Parity by popularity (EC-Cache, section 6.1) at a PoP: the rows that its cache gives to popular objects within its
 * capacity, and what more stored rows of them would give. A PoP without peers plans once, by the true popularity.
 */

import { Planner } from "@agarose/solver/internal/planner/planner";
import type { RegionEstimate } from "@agarose/solver/internal/options/sources";
import type { ObjectShape } from "@agarose/solver/internal/planner/object-shape";
import { NO_PEERS } from "@agarose/solver/internal/cooperation/peer-view";
import { estimateSavings } from "@agarose/solver/internal/planner/savings";
import type { Savings } from "@agarose/solver/internal/planner/savings";

/** A PoP and what it reads. */
export interface PopularRowsStudy {
  /** Milliseconds to each region. */
  readonly latencyMs: readonly number[];
  /** Deviation as a share of the mean. */
  readonly deviation: number;
  readonly cacheMs: number;
  readonly capacityChunks: number;
  readonly k: number;
  /** Stored rows beyond k: of every object, and of the `hot` most popular ones. */
  readonly m: number;
  readonly mOfHot: number;
  readonly hot: number;
  readonly objects: number;
  readonly zipfExponent: number;
}

/** What the readers have. */
export interface PopularRows {
  /** Stored rows beyond those that every object has, as a share of those. */
  readonly moreStorage: number;
  /** Rows cached, by rank of the object. */
  readonly cached: readonly number[];
  /** Without any cache, and with it. */
  readonly without: Savings;
  readonly with: Savings;
}

const CHUNK_BYTES = 1_000;
/** Requests that the planner replays: many, so that rounding hardly matters. */
const REQUESTS = 20_000;
const DELTA = 1;

/** Plans the cache, and returns what reads take with it. */
export function popularRows(study: PopularRowsStudy): PopularRows {
  const { latencyMs, deviation, cacheMs, capacityChunks, k, m, mOfHot, hot, objects, zipfExponent } = study;
  const regions = latencyMs.map((meanMs, r): RegionEstimate => {
    return { name: `r${r}`, meanMs, sdMs: deviation * meanMs, down: false };
  });
  const shapes = Array.from({ length: objects }, (_, o): ObjectShape => {
    const rows = k + (o < hot ? mOfHot : m);
    const placement = Array.from({ length: rows }, (_row, row) => regions[(o + row) % regions.length]!.name);
    const bytes = { chunkBytes: CHUNK_BYTES, shardBytes: CHUNK_BYTES };
    return { key: `o${o}`, version: `o${o}`, k, m: rows - k, placement, stripes: 1, ...bytes };
  });
  const weights = shapes.map((_, rank) => (rank + 1) ** -zipfExponent);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const capacityBytes = capacityChunks * CHUNK_BYTES;
  const options = { policy: "exact", capacityBytes, cacheMs, delta: DELTA, functionalPop: 0, slots: objects };
  const { planned } = new Planner(options).plan({
    nowMs: 60_000,
    requests: shapes.map(({ key }, o) => {
      const requests = Math.round((REQUESTS * weights[o]!) / total);
      return { key, requests, popularity: requests };
    }),
    objects: new Map(shapes.map((shape) => [shape.key, shape])),
    regions,
    ledger: new Map(),
  });
  const chunks = new Map(planned.map((kept) => [kept.object.key, kept.chunks]));
  const readsWith = (chunksOf: (key: string) => readonly number[]): Savings => {
    const served = shapes.map((object, o) => ({ object, popularity: weights[o]!, chunks: chunksOf(object.key) }));
    return estimateSavings(served, { regions, peers: NO_PEERS, cacheMs, delta: DELTA })!;
  };
  return {
    moreStorage: (hot * (mOfHot - m)) / (objects * (k + m)),
    cached: shapes.map(({ key }) => chunks.get(key)?.length ?? 0),
    without: readsWith(() => []),
    with: readsWith((key) => chunks.get(key) ?? []),
  };
}
