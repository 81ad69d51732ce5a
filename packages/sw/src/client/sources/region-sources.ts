/** The buckets of a plan as sources. Their requests wait in the queues that all reads share. */
import type { FetchPort } from "@agarose/core";
import { stripeShape } from "@agarose/core/format";
import { hedgeAfterMs, RegionSource, type ChunkSource, type LatencyEstimate } from "@agarose/core/sources";
import { FAILED, sourceId, type LatencyTracker } from "../latency-tracker.ts";
import type { FullPlan } from "../plans/bundle-request.ts";
import { REQUESTS_PER_SOURCE, type FairQueue, type Slot } from "./fair-queue.ts";

/** Each request of a source adds this share to its latency: of equal sources, the least loaded is asked. */
const LOAD = 0.002;

/** Dependencies of the sources of a read's regions. */
export interface RegionPorts {
  readonly fetch: FetchPort;
  readonly latencies: LatencyTracker;
  /** The queue of a region's requests. */
  readonly queue: (region: string) => FairQueue;
  readonly slot: Slot;
  /** The plan with valid signatures. */
  readonly sign: (plan: FullPlan) => Promise<FullPlan>;
}

/** One source for every region of `plan`. */
export function regionSources(plan: FullPlan, ports: RegionPorts): ChunkSource[] {
  let signed = Promise.resolve(plan);
  const { manifest } = plan;
  const bytes = stripeShape(manifest, 0).shardBytes;
  return plan.regions.map((region) => {
    const id = sourceId("region", region.name);
    // A client that has not measured a region believes a PoP that reports it down.
    ports.latencies.seed(id, region.down ? FAILED : region);
    const latency = (): LatencyEstimate => ports.latencies.estimate(id, bytes);
    const fetchSigned: FetchPort = async (url, init) => {
      // Concurrent requests share a new plan. After a failure, the next request fetches one again.
      signed = signed.then(ports.sign, () => ports.sign(plan));
      const { regions } = await signed;
      const queries = regions.find(({ name }) => name === region.name)?.signed?.queries ?? {};
      return ports.fetch(`${url}?${queries[url.slice(url.lastIndexOf("/") + 1)]}`, init);
    };
    const fetch = region.signed ? fetchSigned : ports.fetch;
    const source = new RegionSource({ manifest, region, fetch, latency });
    return queued(source, ports.queue(region.name), ports.slot);
  });
}

/** `source` behind a queue. The wait counts in its latency, but not in what is measured. */
function queued(source: RegionSource, queue: FairQueue, slot: Slot): ChunkSource {
  return {
    id: source.id,
    kind: source.kind,
    servesParts: source.servesParts,
    get latency() {
      const { latency } = source;
      // All places of a queue become free once in the time of one request.
      const times = LOAD * queue.load + Math.max(1, queue.load / REQUESTS_PER_SOURCE);
      return { ...latency, meanMs: latency.meanMs * times, lateMs: hedgeAfterMs(latency) * times };
    },
    get progress() {
      // A read that waits in the queue receives nothing, and is not stuck while the queue moves.
      return source.progress + queue.finished;
    },
    has: (stripe, chunk) => source.has(stripe, chunk),
    fetch: (request) =>
      queue.run(
        () => {
          request.onStart?.();
          return source.fetch(request);
        },
        request.signal,
        slot,
      ),
    release: (stripe) => source.release(stripe),
    close: () => source.close(),
  };
}
