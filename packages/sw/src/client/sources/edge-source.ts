/** The PoP's bundle as a source of chunks. */
import { LEAF_LIST } from "@agarose/core/format";
import type { Piece, RequestRecord } from "@agarose/core/read";
import { bundleSource, type ChunkSource } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import { popId, sourceId, type LatencyTracker } from "../latency-tracker.ts";
import type { Bundle, FullPlan } from "../plans/bundle-request.ts";

/** Delivery of a chunk behind the plan, before it is measured: the chunks are already on their way. */
const EDGE_DELIVERY = { meanMs: 20, sdMs: 20 };
/**
 * Of a batch: preferred to any bucket, as its bodies come without a request. They come one after the other, and the PoP
 * may have to fetch them, so it takes long until one is late.
 */
const BATCH_DELIVERY = { meanMs: 0, sdMs: 0, lateMs: 700 };

/** Where the cached chunks of a read come from: a bundle whose plan is here, or a call that may be under way. */
export interface Edge {
  readonly pop: Endpoint;
  readonly bundle: Promise<Bundle>;
  /** The plan of the bundle, once it is here. It replaces the one that the read began with. */
  readonly plan?: FullPlan;
  /** When that came, on the clock: chunks are on their way from then on, and take one round trip less. */
  readonly arrivedMs?: number;
  /** Whether the PoP sends also what it has not cached. */
  readonly sendsAll: boolean;
  /** Cancels a call. A second time has no effect. */
  release?(): void;
}

/** Whether the PoP sends its batch: what it has not sent yet is not late. */
export function isSending(edge: Edge | undefined, latencies: LatencyTracker): unknown {
  return edge?.sendsAll && latencies.silentMs(popId(edge.pop.name)) < BATCH_DELIVERY.lateMs;
}

/**
 * The edge as a source.
 *
 * @param bytes of a stripe in the bundle; 0 for a small range, whose blocks come one by one.
 * @param pieces what a small range lies in: the PoP sends them, with the leaves of their stripes, and no stripes.
 */
export function edgeSource(
  edge: Edge,
  planNow: () => FullPlan,
  latencies: LatencyTracker,
  bytes: number,
  pieces: readonly Piece[] | undefined,
): ChunkSource {
  const { k } = planNow().manifest;
  const pop = edge.pop.name;
  const id = sourceId("edge", pop);
  latencies.seed(id, EDGE_DELIVERY);
  return bundleSource({
    id: pop,
    frames: edge.bundle.then(({ frames }) => frames),
    servesParts: pieces && "wanted",
    cached: () => {
      const { cached } = planNow();
      // Of k cached chunks, the PoP decodes any other.
      const has = (chunk: number): boolean => cached.length >= k || cached.includes(chunk);
      return pieces ? [LEAF_LIST, ...pieces.map(({ chunk }) => chunk).filter(has)] : cached;
    },
    latency: () => {
      if (edge.sendsAll) return BATCH_DELIVERY;
      const delivery = latencies.estimate(id, bytes);
      if (edge.arrivedMs !== undefined) return delivery;
      const trip = latencies.estimate(popId(pop));
      return { meanMs: trip.meanMs + delivery.meanMs, sdMs: Math.hypot(trip.sdMs, delivery.sdMs) };
    },
  });
}

/**
 * Learns from a request that has ended.
 *
 * @param ofEdge what a chunk of `edge` counts as, or 0 for its own bytes.
 */
export function learnDelivery(
  { source, kind, bytes, outcome, startMs, endMs, waitMs, follows, error }: RequestRecord,
  latencies: LatencyTracker,
  edge: Edge | undefined,
  ofEdge: number,
): void {
  const isEdge = kind === "edge";
  // The PoP may have fetched uncached chunks first, so their times do not measure its cache.
  if (endMs === undefined || (isEdge && edge!.sendsAll)) return;
  const id = sourceId(kind, source);
  const size = (isEdge && ofEdge) || bytes;
  // A request that still waits for its turn says nothing about its region.
  const waitedMs = waitMs ?? (kind === "region" ? Number.NaN : 0);
  const ms = endMs - waitedMs - (isEdge ? Math.max(startMs, edge!.arrivedMs ?? 0) : startMs);
  if (follows && outcome !== "failed") {
    // It waited for the blocks before it, on a line that its GET shares.
    if (outcome !== "cancelled") latencies.heard(id);
  } else if (outcome === "used" || outcome === "unused") {
    latencies.observe(id, ms, size);
  } else if (outcome === "failed") {
    // A missing chunk says nothing about the health of its source.
    if (!isEdge && error !== "CHUNK_MISSING") latencies.failed(id);
  } else if (!isEdge) {
    latencies.observeAtLeast(id, ms, size);
  }
}
