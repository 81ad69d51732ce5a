/**
 * Other PoPs as sources: what the plan says they hold, asked of them directly, so that a slow one holds up nothing else. Only
 * PoPs of our own configuration are asked. What they are believed to hold is corrected when the plan of the bundle comes.
 */
import {
  LATENCY_UNKNOWN,
  PeerSource,
  stripeShape,
  type FetchPort,
  type LatencyEstimate,
  type PlanPeer,
} from "@agarose/core";
import type { FullPlan } from "../plans/bundle-request.ts";
import type { Endpoint } from "../../shared/config.ts";
import type { LatencyBook } from "../latency-tracker.ts";
import { deliveryOf, popAnswer } from "../read-trace.ts";

export function peerSources(
  believed: { readonly plan: FullPlan },
  pops: readonly Endpoint[],
  { fetch, latencies }: { readonly fetch: FetchPort; readonly latencies: LatencyBook },
): PeerSource[] {
  const { manifest } = believed.plan;
  const bytes = stripeShape(manifest, 0).shardBytes;
  return pops.map((peer) => {
    const id = deliveryOf("peer", peer.name);
    const told = (): PlanPeer | undefined => believed.plan.peers?.find(({ name }) => name === peer.name);
    // Our own way there, where we have measured it, says more than our PoP's.
    const trip = latencies.estimate(popAnswer(peer.name));
    latencies.seed(id, trip === LATENCY_UNKNOWN ? (told() ?? trip) : trip);
    const latency = (): LatencyEstimate => latencies.estimate(id, bytes);
    return new PeerSource({ manifest, peer, fetch, latency, chunks: () => told()?.chunks ?? [] });
  });
}
