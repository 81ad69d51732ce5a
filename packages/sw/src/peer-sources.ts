/**
 * Other PoPs as sources: what the plan says they hold, asked of them directly, so that a slow one holds up nothing else. Only
 * PoPs of our own configuration are asked.
 */
import { LATENCY_UNKNOWN, PeerSource, type FetchPort } from "@agarose/core";
import type { FullPlan } from "./bundle-request.ts";
import type { Endpoint } from "./config.ts";
import type { LatencyBook } from "./latency-book.ts";
import { deliveryOf, popAnswer } from "./read-trace.ts";

export function peerSources(
  { manifest, peers = [] }: FullPlan,
  pops: readonly Endpoint[],
  { fetch, latencies }: { readonly fetch: FetchPort; readonly latencies: LatencyBook },
): PeerSource[] {
  const bytes = Math.ceil(Math.min(manifest.bytes, manifest.stripeBytes) / manifest.k);
  return peers.flatMap(({ name, chunks, meanMs, sdMs }) => {
    const peer = pops.find((pop) => pop.name === name);
    if (!peer) return [];
    const id = deliveryOf("peer", name);
    // Our own way there, where we have measured it, says more than our PoP's.
    const trip = latencies.estimate(popAnswer(name));
    latencies.seed(id, trip === LATENCY_UNKNOWN ? { meanMs, sdMs } : trip);
    return new PeerSource({ manifest, peer, chunks, fetch, latency: () => latencies.estimate(id, bytes) });
  });
}
