/**
 * The sources of one read: the PoP's bundle, and the bucket of every region in the plan.
 */
import {
  BundleSource,
  hedgeAfterMs,
  LATENCY_UNKNOWN,
  RegionSource,
  stripeShape,
  type ChunkSource,
  type Clock,
  type FetchPort,
  type LatencyEstimate,
  type PlanRegion,
} from "@agarose/core";
import type { FullPlan } from "../plans/bundle-request.ts";
import type { Endpoint } from "../../shared/config.ts";
import { REQUESTS_PER_SOURCE, type FairQueue, type Turn } from "./fair-queue.ts";
import { FAILED, type LatencyBook } from "../latency-tracker.ts";
import type { Edge } from "../client-read.ts";
import { deliveryOf, popAnswer } from "../read-trace.ts";

/** What is believed of the edge's delivery behind its plan before it has been measured: chunks are under way already. */
const EDGE_DELIVERY = { meanMs: 20, sdMs: 20 };
/** Each request of a source makes it count as slower by so much: of equal ones, the least loaded is asked. */
const LOAD = 0.002;

export interface RegionPorts {
  readonly fetch: FetchPort;
  readonly clock: Clock;
  readonly latencies: LatencyBook;
  /** The queue of a region's requests. */
  readonly queue: (region: string) => FairQueue;
  readonly turn: Turn;
  /** The plan with signatures that are good still. */
  readonly resign: (plan: FullPlan) => Promise<FullPlan>;
}

export function regionSources(plan: FullPlan, ports: RegionPorts): ChunkSource[] {
  let current = Promise.resolve(plan);
  const { manifest } = plan;
  const bytes = stripeShape(manifest, 0).shardBytes;
  return plan.regions.map((region) => {
    const id = deliveryOf("region", region.name);
    // One that the PoP holds for down is believed to be so by a client that has not measured it.
    ports.latencies.seed(id, region.down ? FAILED : region);
    const latency = (): LatencyEstimate => ports.latencies.estimate(id, bytes);
    const fetchSigned: FetchPort = async (url, init) => {
      // Requests at one time share a new plan; one that could not be had is asked for again.
      current = current.then(ports.resign, () => ports.resign(plan));
      const { regions } = await current;
      const queries = regions.find(({ name }) => name === region.name)?.signed?.queries ?? {};
      return ports.fetch(`${url}?${queries[url.slice(url.lastIndexOf("/") + 1)]}`, init);
    };
    const fetch = region.signed ? fetchSigned : ports.fetch;
    const source = new RegionSource({ manifest, region, ...ports, fetch, latency });
    return queued(source, ports.queue(region.name), ports.turn);
  });
}

/** `source`, whose requests wait for their turn. What they are going to wait is part of its latency, not of what is measured. */
function queued(source: RegionSource, queue: FairQueue, turn: Turn): ChunkSource {
  return {
    id: source.id,
    kind: source.kind,
    get latency() {
      const { latency } = source;
      // While one request takes its time, all the places are freed once.
      const times = LOAD * queue.load + Math.max(1, queue.load / REQUESTS_PER_SOURCE);
      return { ...latency, meanMs: latency.meanMs * times, lateMs: hedgeAfterMs(latency) * times };
    },
    get progress() {
      // Who waits for a turn gets nothing yet, and is no worse off for that.
      return source.progress + queue.finished;
    },
    has: (stripe, chunk) => source.has(stripe, chunk),
    fetch: (request) =>
      queue.run(turn, request.signal, () => {
        request.onStart?.();
        return source.fetch(request);
      }),
    release: (stripe) => source.release?.(stripe),
    close: () => source.close?.(),
  };
}

/** The edge as a source. The plan of its bundle takes the place of what is believed, of the edge and of peers. */
export function edgeSource(edge: Edge, believed: { plan: FullPlan }, latencies: LatencyBook): BundleSource {
  const { manifest, cached } = believed.plan;
  const bytes = cached.length * stripeShape(manifest, 0).shardBytes;
  const pop = edge.pop.name;
  const id = deliveryOf("edge", pop);
  latencies.seed(id, EDGE_DELIVERY);
  return new BundleSource({
    id: pop,
    frames: edge.bundle.then(({ frames, plan }) => {
      believed.plan = plan;
      return frames;
    }),
    cached: () => believed.plan.cached,
    latency: () => {
      const delivery = latencies.estimate(id, bytes);
      if (edge.hasArrived) return delivery;
      const trip = latencies.estimate(popAnswer(pop));
      return { meanMs: trip.meanMs + delivery.meanMs, sdMs: Math.hypot(trip.sdMs, delivery.sdMs) };
    },
  });
}

/**
 * The configured regions, with what a plan says of them; those of the plan where none is configured. A plan so brings no host
 * that the configuration does not name, unless that leaves it to its PoPs.
 */
export function allowedRegions(told: readonly PlanRegion[], configured: readonly Endpoint[]): readonly PlanRegion[] {
  if (configured.length === 0) return told;
  return configured.map((own) => ({ ...LATENCY_UNKNOWN, ...told.find(({ name }) => name === own.name), ...own }));
}
