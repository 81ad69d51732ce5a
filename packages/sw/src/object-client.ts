/**
 * Everything a client keeps between reads: configuration, plans, latencies, and which PoP is nearest. One per service
 * worker, or per page without one.
 */
import {
  LATENCY_UNKNOWN,
  parseKey,
  type Clock,
  type Codec,
  type FetchPort,
  type Manifest,
  type PlanRegion,
  type Random,
  type Sha256,
} from "@agarose/core";
import type { FullPlan } from "./bundle-request.ts";
import type { ClientConfig, Endpoint } from "./config.ts";
import { LatencyBook } from "./latency-book.ts";
import { ObjectRead, type ObjectAnswer, type ObjectRequest } from "./object-read.ts";
import { PlanCache } from "./plan-cache.ts";
import type { ReadEvent } from "./read-events.ts";
import { popRoundTrip, regionDelivery } from "./read-trace.ts";
import { withConfiguredUrls } from "./sources.ts";
import { Telemetry, type TelemetryReport } from "./telemetry.ts";

/** What a client takes from outside. */
export interface ClientPorts {
  readonly fetch: FetchPort;
  /** Sends a telemetry report; failures are its own. */
  readonly post: (url: string, report: TelemetryReport) => void;
  readonly clock: Clock;
  readonly sha256: Sha256;
  readonly random: Random;
  /** Called when something must be decoded. */
  readonly codec: () => Promise<Codec>;
  readonly emit: (event: ReadEvent) => void;
}

/** Round trips are measured anew when a read comes so long after the last time. */
export const PROBE_EVERY_MS = 30_000;
const PROBE_TIMEOUT_MS = 3_000;

export class ObjectClient {
  readonly config: ClientConfig;
  readonly ports: ClientPorts;
  readonly latencies: LatencyBook;
  readonly plans: PlanCache;
  readonly telemetry: Telemetry;
  #regions: readonly PlanRegion[];
  #probedAtMs = Number.NEGATIVE_INFINITY;

  constructor(config: ClientConfig, ports: ClientPorts) {
    this.config = config;
    this.ports = ports;
    this.latencies = new LatencyBook(ports.clock);
    this.plans = new PlanCache(ports.clock);
    this.#regions = config.regions.map((region) => ({ ...region, ...LATENCY_UNKNOWN }));
    this.telemetry = new Telemetry({
      clock: ports.clock,
      send: (report) => {
        const [pop] = this.popsByDistance();
        if (pop) ports.post(`${pop.url}/v1/telemetry`, report);
      },
    });
  }

  /**
   * Answers a GET or HEAD of an object; the promise resolves when the first stripe is ready. Rejects with the code of what
   * went wrong; a read that fails later errors the body instead. `onEnd` is told when the read is over.
   */
  async answer(request: ObjectRequest, onEnd: () => void = () => {}): Promise<ObjectAnswer> {
    parseKey(request.key);
    void this.probe();
    return new ObjectRead(this, request, onEnd).answer();
  }

  /** PoPs by measured round trip; as configured until then, and those that failed lately last. */
  popsByDistance(): readonly Endpoint[] {
    const meanMs = ({ name }: Endpoint): number => this.latencies.estimate(popRoundTrip(name)).meanMs;
    return this.config.pops.toSorted((a, b) => meanMs(a) - meanMs(b));
  }

  /** The buckets as last heard from a PoP, or as configured. */
  get regions(): readonly (PlanRegion & { readonly latency: { meanMs: number; sdMs: number } })[] {
    return this.#regions.map((region) => ({
      ...region,
      latency: this.latencies.estimate(regionDelivery(region.name)),
    }));
  }

  /** Takes over what a PoP says, and returns the plan as this client reads by it. */
  learn(key: string, heard: FullPlan): FullPlan {
    const regions = withConfiguredUrls(heard.regions, this.config.regions);
    const plan = { ...heard, delta: this.config.delta ?? heard.delta, regions };
    this.#regions = plan.regions;
    this.plans.set(key, plan);
    return plan;
  }

  /** A plan without a PoP: nothing is cached. */
  planFromBuckets(key: string, manifest: Manifest, delta: number): FullPlan {
    const regions = this.#regions;
    return this.learn(key, { pop: "", epoch: 0, version: manifest.version, manifest, cached: [], regions, delta });
  }

  /**
   * Measures the round trip to every PoP when that has not been done lately. `now` does it at once and forgets what was
   * measured before, because the client has moved.
   */
  async probe(now = false): Promise<void> {
    const { clock } = this.ports;
    if (this.config.pops.length < 2 || (!now && clock.now() - this.#probedAtMs < PROBE_EVERY_MS)) return;
    this.#probedAtMs = clock.now();
    await Promise.all(this.config.pops.map((pop) => this.#probe(pop, now)));
  }

  async #probe({ name, url }: Endpoint, afresh: boolean): Promise<void> {
    const { clock } = this.ports;
    const abort = new AbortController();
    const cancelTimer = clock.after(PROBE_TIMEOUT_MS, () => abort.abort());
    const trip = async (): Promise<number> => {
      const startMs = clock.now();
      const response = await this.ports.fetch(`${url}/healthz`, { signal: abort.signal });
      await response.body?.cancel();
      if (response.status !== 200) throw new Error(`${name} answered ${response.status}`);
      return clock.now() - startMs;
    };
    try {
      // The first one opens the connection, which a read does not pay for.
      await trip();
      // The shortest of a few: probes run while a page loads, and what else the browser does then is not the PoP's.
      const trips = [await trip(), await trip(), await trip()];
      if (afresh) this.latencies.forget(popRoundTrip(name));
      this.latencies.observe(popRoundTrip(name), Math.min(...trips));
    } catch {
      this.latencies.failed(popRoundTrip(name));
    } finally {
      cancelTimer();
    }
  }
}
