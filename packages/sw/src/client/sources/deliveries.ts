/** What the requests of reads teach about their sources. */
import type { RequestRecord } from "@agarose/core/read";
import { sourceId, type LatencyTracker } from "../latency-tracker.ts";
import type { Edge } from "./edge-source.ts";

/**
 * Learns from a request that has ended.
 *
 * @param edgeBytes what a chunk of `edge` counts as, or 0 for its own bytes.
 */
export function learnDelivery(
  { source, kind, bytes, outcome, startMs, endMs, waitMs, follows, error }: RequestRecord,
  latencies: LatencyTracker,
  edge: Edge | undefined,
  edgeBytes: number,
): void {
  const isEdge = kind === "edge";
  // What the PoP sends beside its cache it may have fetched first: that says nothing of its cache.
  if (endMs === undefined || (isEdge && edge!.sendsAll)) return;
  const id = sourceId(kind, source);
  const size = (isEdge && edgeBytes) || bytes;
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
