/** The PoP's bundle as a source of chunks. */
import { LEAF_LIST, stripeShape } from "@agarose/core/format";
import type { Piece } from "@agarose/core/read";
import { BundleSource } from "@agarose/core/sources";
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
  /** Whether the plan is here: a chunk then takes one round trip less. */
  readonly hasArrived: boolean;
  /** Whether the PoP sends also what it has not cached. */
  readonly lasting?: FullPlan | undefined;
  /** Ends a call. A second time has no effect. */
  release?(): void;
}

/** Whether the PoP sends its batch: what it has not sent yet is not late. */
export function isSending(edge: Edge | undefined, latencies: LatencyTracker): unknown {
  return edge?.lasting && latencies.silentMs(popId(edge.pop.name)) < BATCH_DELIVERY.lateMs;
}

/**
 * The edge as a source. The bundle's plan replaces `believed.plan`, for the edge and for peers.
 *
 * @param pieces what a small range lies in: the PoP sends them, with the leaves of their stripes, and no stripes.
 */
export function edgeSource(
  edge: Edge,
  believed: { plan: FullPlan },
  latencies: LatencyTracker,
  pieces: readonly Piece[] | undefined,
): BundleSource {
  const { manifest, cached } = believed.plan;
  const bytes = pieces ? 0 : cached.length * stripeShape(manifest, 0).shardBytes;
  const pop = edge.pop.name;
  const id = sourceId("edge", pop);
  latencies.seed(id, EDGE_DELIVERY);
  return new BundleSource({
    id: pop,
    frames: edge.bundle.then(({ frames, plan }) => {
      believed.plan = plan;
      return frames;
    }),
    servesParts: pieces && "wanted",
    cached: () => {
      const now = believed.plan.cached;
      // Of k cached chunks, the PoP decodes any other.
      const has = (chunk: number): boolean => now.length >= manifest.k || now.includes(chunk);
      return pieces ? [LEAF_LIST, ...pieces.map(({ chunk }) => chunk).filter(has)] : now;
    },
    latency: () => {
      if (edge.lasting) return BATCH_DELIVERY;
      const delivery = latencies.estimate(id, bytes);
      if (edge.hasArrived) return delivery;
      const trip = latencies.estimate(popId(pop));
      return { meanMs: trip.meanMs + delivery.meanMs, sdMs: Math.hypot(trip.sdMs, delivery.sdMs) };
    },
  });
}
