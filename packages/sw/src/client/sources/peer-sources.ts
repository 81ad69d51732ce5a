/**
 * Other PoPs as sources. The read asks them directly, so a slow peer holds up nothing else. It asks only PoPs of the
 * configuration. The plan of the bundle corrects what a remembered plan says they hold.
 */
import type { FetchPort } from "@agarose/core";
import { stripeShape, type PlanPeer } from "@agarose/core/format";
import { LATENCY_UNKNOWN, peerSource, type ChunkSource, type LatencyEstimate } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import { popId, sourceId, type LatencyTracker } from "../latency-tracker.ts";
import type { FullPlan } from "../plans/bundle-request.ts";

/** One source for every configured PoP, by what the plan says at the time of each request. */
export function peerSources(
  planNow: () => FullPlan,
  pops: readonly Endpoint[],
  { fetch, latencies }: { readonly fetch: FetchPort; readonly latencies: LatencyTracker },
): ChunkSource[] {
  const { manifest } = planNow();
  const bytes = stripeShape(manifest, 0).shardBytes;
  return pops.map((peer) => {
    const id = sourceId("peer", peer.name);
    const planned = (): PlanPeer | undefined => planNow().peers?.find(({ name }) => name === peer.name);
    // This client's own measurement of the way there is better than its PoP's.
    const trip = latencies.estimate(popId(peer.name));
    latencies.seed(id, trip === LATENCY_UNKNOWN ? (planned() ?? trip) : trip);
    const latency = (): LatencyEstimate => latencies.estimate(id, bytes);
    return peerSource({ manifest, peer, fetch, latency, chunks: () => planned()?.chunks ?? [] });
  });
}
