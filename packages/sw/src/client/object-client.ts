/**
 * Everything a client keeps between reads: configuration, plans, latencies, and which PoP is nearest. One per service
 * worker, or per page without one.
 */
import {
  AgaroseError,
  HAS_MESSAGES,
  DELTA_DEFAULT,
  parseKey,
  type Clock,
  type Decoder,
  type FetchPort,
  type Manifest,
  type PlanRegion,
  type Random,
  type Sha256,
} from "@agarose/core";
import { PLANS_MAX, requestPlans, type FullPlan } from "./plans/bundle-request.ts";
import type { ClientConfig, Endpoint } from "../shared/config.ts";
import { FairQueue } from "./sources/fair-queue.ts";
import { HedgeBudget } from "./hedge-budget.ts";
import { LatencyBook } from "./latency-tracker.ts";
import { locate } from "./plans/find-plan.ts";
import { ObjectRead, type ObjectAnswer, type ObjectRequest } from "./client-read.ts";
import type { ObjectStore } from "./object-store.ts";
import { PlanCache } from "./plans/plan-cache.ts";
import { discard } from "./plans/pop-call.ts";
import type { ReadEvent } from "../events/read-events.ts";
import { deliveryOf, popAnswer } from "./read-trace.ts";
import { allowedRegions } from "./sources/region-sources.ts";
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
  readonly codec: () => Promise<Decoder>;
  readonly emit: (event: ReadEvent) => void;
  /** Whether the user asks for little data (Save-Data): no requests beyond k then, but for those that replace late ones. */
  readonly savesData: () => boolean;
  /** Keeps what was read. */
  readonly store?: ObjectStore | undefined;
}

/** Round trips are measured anew when a read comes so long after the last time. */
export const PROBE_EVERY_MS = 30_000;
const PROBE_TIMEOUT_MS = 3_000;
/** Sorts a PoP that was never reached behind those that were. */
const TRIP_MS_UNKNOWN = 10_000;
const CLEARLY_NEARER = 0.8;
/** Signatures are not used in their last seconds, which a request may take to arrive. */
const EXPIRY_MARGIN_MS = 20_000;
/** Plans that are fetched ahead at a time: reads of the page go on beside them. */
const PRELOADS_MAX = 8;

export class ObjectClient {
  readonly config: ClientConfig;
  readonly ports: ClientPorts;
  readonly latencies: LatencyBook;
  readonly plans: PlanCache;
  readonly reporting: Telemetry;
  readonly hedging = new HedgeBudget();
  readonly #queues = new Map<string, FairQueue>();
  #regions: readonly PlanRegion[];
  /** Round trips as probed last: the time to a plan says more of what the PoP had to fetch for it. */
  readonly #tripMs = new Map<string, number>();
  /** For telemetry, by PoP. */
  readonly #tokens = new Map<string, string>();
  #nearest: Endpoint | undefined;
  #probedAtMs = Number.NEGATIVE_INFINITY;

  constructor(config: ClientConfig, ports: ClientPorts) {
    this.config = config;
    this.ports = ports;
    this.latencies = new LatencyBook(ports.clock);
    this.plans = new PlanCache(ports.clock);
    this.#regions = allowedRegions([], config.regions);
    this.reporting = new Telemetry({
      clock: ports.clock,
      store: ports.store,
      send: (report) => {
        const [pop] = this.popsByDistance();
        const token = pop && this.#tokens.get(pop.name);
        if (token) ports.post(`${pop.url}/v1/telemetry`, { token, ...report });
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

  /**
   * PoPs by measured round trip, as configured until then; those that failed lately come last. The nearest one stays the
   * nearest until another is clearly nearer, because what is known of its cache is worth more than a millisecond.
   */
  popsByDistance(): readonly Endpoint[] {
    const isAvoided = ({ name }: Endpoint): number => Number(this.latencies.isAvoided(popAnswer(name)));
    const tripMs = ({ name }: Endpoint): number => this.#tripMs.get(name) ?? TRIP_MS_UNKNOWN;
    const pops = this.config.pops.toSorted((a, b) => isAvoided(a) - isAvoided(b) || tripMs(a) - tripMs(b));
    const kept = pops.find((pop) => pop === this.#nearest && !isAvoided(pop));
    if (kept && tripMs(pops[0]!) > CLEARLY_NEARER * tripMs(kept)) return [kept, ...pops.filter((pop) => pop !== kept)];
    this.#nearest = pops[0];
    return pops;
  }

  /** The buckets as last heard from a PoP, or as configured. */
  get regions(): readonly (PlanRegion & { readonly latency: { meanMs: number; sdMs: number } })[] {
    return this.#regions.map((region) => ({
      ...region,
      latency: this.latencies.estimate(deliveryOf("region", region.name)),
    }));
  }

  /** Takes over what a PoP says, and returns the plan as this client reads by it. */
  learn(key: string, heard: FullPlan): FullPlan {
    const regions = allowedRegions(heard.regions, this.config.regions);
    const seconds = Math.min(...regions.map(({ signed }) => signed?.seconds ?? Number.POSITIVE_INFINITY));
    const signedUntilMs = this.ports.clock.now() + 1000 * seconds - EXPIRY_MARGIN_MS;
    const plan = { ...heard, delta: this.config.delta ?? heard.delta, regions, signedUntilMs };
    // Private buckets are of no use without a PoP, and their signatures are of this object.
    this.#regions = regions.filter((region) => !region.signed);
    if (plan.telemetry) this.#tokens.set(plan.pop, plan.telemetry);
    // What is private is read by whoever may, each time anew: others share this client.
    if (plan.private) return plan;
    this.plans.set(key, plan);
    this.ports.store?.learn(key, plan);
    return plan;
  }

  /** The requests to a region, of all reads. */
  queue(region: string): FairQueue {
    let queue = this.#queues.get(region);
    if (!queue) this.#queues.set(region, (queue = new FairQueue()));
    return queue;
  }

  /**
   * Fetches the plans that are not known, many in one request to the nearest PoP, so that reads of `keys` need not wait for them.
   * What it does not answer is asked for one by one; failures are left to those reads.
   */
  async preload(keys: readonly string[]): Promise<void> {
    const unknown = (): string[] => [...new Set(keys)].filter((key) => !this.plans.get(key));
    const [pop] = this.popsByDistance();
    const asked = pop ? unknown() : [];
    while (asked.length > 0) {
      try {
        const plans = requestPlans(pop!, asked.splice(0, PLANS_MAX), this.ports.fetch);
        for await (const [key, plan] of plans) this.learn(key, plan);
      } catch {
        break;
      }
    }
    const waiting = unknown();
    const headers = new Headers();
    const work = async (): Promise<void> => {
      for (let key = waiting.shift(); key !== undefined; key = waiting.shift())
        await this.answer({ key, method: "HEAD", headers }).catch(() => {});
    };
    await Promise.all(Array.from({ length: PRELOADS_MAX }, work));
  }

  /** Forgets the plans, and drops what is kept, of the keys for which `isPurged`. */
  async purge(isPurged: (key: string) => boolean): Promise<void> {
    this.plans.purge(isPurged);
    await this.ports.store?.purge(isPurged);
  }

  /** `plan` with signatures that are good, by asking a PoP where its own have expired. What was replaced since has none. */
  async resigned(key: string, plan: FullPlan, signal: AbortSignal, fetch: FetchPort): Promise<FullPlan> {
    if (this.ports.clock.now() < plan.signedUntilMs!) return plan;
    const request = { key, known: plan, span: { from: 0, to: 0 }, signal, fetch };
    const { bundle, plan: heard } = await locate(this, request);
    discard(bundle);
    return heard;
  }

  /** A plan without a PoP: nothing is cached. */
  planFromBuckets(key: string, manifest: Manifest): FullPlan {
    const { version } = manifest;
    const regions = this.#regions;
    return this.learn(key, { pop: "", epoch: 0, version, manifest, cached: [], regions, delta: DELTA_DEFAULT });
  }

  /**
   * Measures the round trip to every PoP when that has not been done lately. With `moved` it does so at once, and whatever
   * was measured from where the client was before is forgotten.
   */
  async probe(moved = false): Promise<void> {
    const { clock } = this.ports;
    if (this.config.pops.length < 2 || (!moved && clock.now() - this.#probedAtMs < PROBE_EVERY_MS)) return;
    this.#probedAtMs = clock.now();
    if (moved) this.latencies.clear();
    await Promise.all(this.config.pops.map((pop) => this.#probe(pop)));
    if (moved) this.#nearest = undefined;
  }

  async #probe({ name, url }: Endpoint): Promise<void> {
    const { clock } = this.ports;
    const abort = new AbortController();
    const cancelTimer = clock.after(PROBE_TIMEOUT_MS, () => abort.abort());
    const trip = async (): Promise<number> => {
      const startMs = clock.now();
      const response = await this.ports.fetch(`${url}/healthz`, { signal: abort.signal });
      await response.body?.cancel();
      if (response.status !== 200)
        throw new AgaroseError("SOURCE_FAILED", HAS_MESSAGES && `${name} answered ${response.status}`);
      return clock.now() - startMs;
    };
    try {
      // The first one opens the connection, which a read does not pay for.
      await trip();
      // The shortest of a few: probes run while a page loads, and what else the browser does then is not the PoP's.
      const tripMs = Math.min(await trip(), await trip(), await trip());
      this.#tripMs.set(name, tripMs);
      this.latencies.forget(popAnswer(name));
      this.latencies.seed(popAnswer(name), { meanMs: tripMs, sdMs: tripMs / 4 });
    } catch {
      this.latencies.failed(popAnswer(name));
    } finally {
      cancelTimer();
    }
  }
}
