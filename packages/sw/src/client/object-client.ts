/**
 * A client that reads objects. It keeps plans and measurements between reads. A service worker has one, or a page
 * without a worker.
 */
import { BlockMemory, encodeKey, parseKey, type AgaroseError, type FetchPort } from "@agarose/core";
import { clientTrust, type ClientConfig, type Endpoint } from "../common/config.ts";
import type { ClientPorts } from "./client-ports.ts";
import { ClientRead } from "./client-read.ts";
import { HedgeBudget } from "./hedge-budget.ts";
import { LatencyTracker } from "./latency-tracker.ts";
import { Batches } from "./plans/batches.ts";
import { PlanStore } from "./plans/plan-store.ts";
import { PopSelector } from "./plans/pop-selector.ts";
import type { ManifestChecks } from "./plans/bundle-request.ts";
import { preloadPlans } from "./plans/preload-plans.ts";
import { FairQueue } from "./sources/fair-queue.ts";
import type { ReadRequest, ReadResponse } from "./read-request.ts";
import { Telemetry } from "./telemetry.ts";

/** Memory for blocks of small ranges. */
const BLOCKS_BYTES_MAX = 8 * 1024 * 1024;

/** Reads objects by one configuration. */
export class ObjectClient {
  readonly config: ClientConfig;
  readonly latencies: LatencyTracker;
  readonly pops: PopSelector;
  readonly plans: PlanStore;
  readonly hedging = new HedgeBudget();
  readonly #ports: ClientPorts;
  readonly #checks: ManifestChecks;
  readonly #telemetry: Telemetry;
  readonly #memory: BlockMemory;
  readonly #batches: Batches;
  readonly #queues = new Map<string, FairQueue>();

  constructor(config: ClientConfig, ports: ClientPorts) {
    const { clock, fetch, store } = ports;
    this.config = config;
    this.#ports = ports;
    this.#memory = new BlockMemory(BLOCKS_BYTES_MAX, clock);
    this.#checks = { trust: clientTrust(config), sha256: ports.sha256 };
    this.#batches = new Batches({ clock, fetch, ...this.#checks });
    this.latencies = new LatencyTracker(clock);
    this.pops = new PopSelector({ pops: config.pops, clock, fetch, latencies: this.latencies });
    this.plans = new PlanStore({ config, clock, store });
    this.#telemetry = new Telemetry({
      clock,
      store,
      send: (report) => {
        const [pop] = this.pops.byDistance();
        const token = pop && this.plans.telemetryToken(pop.name);
        if (token) ports.post(`${pop.url}/v1/telemetry`, { token, ...report });
      },
    });
  }

  /**
   * Responds to a GET or HEAD of an object. Resolves when the first stripe is ready, and rejects with an AgaroseError
   * when the read fails before that. A read that fails later errors the body.
   *
   * @param onEnd called once when the read is over.
   */
  async answer(request: ReadRequest, onEnd: () => void = () => {}): Promise<ReadResponse> {
    parseKey(request.key);
    void this.probe();
    const { config, hedging, latencies, plans, pops } = this;
    const queue = (region: string): FairQueue => this.#queue(region);
    const telemetry = this.#telemetry;
    const read = new ClientRead(
      request,
      {
        ...this.#ports,
        ...this.#checks,
        configuredPops: config.pops,
        hedging,
        latencies,
        batches: this.#batches,
        memory: this.#memory,
        plans,
        pops,
        queue,
        telemetry,
      },
      onEnd,
    );
    try {
      return await read.answer();
    } catch (error) {
      const [pop] = pops.byDistance();
      if ((error as AgaroseError).code !== "SIGNATURE_UNSUPPORTED" || !pop) throw error;
      return this.#readAt(pop, request);
    }
  }

  /** Reads through a PoP, which checks signatures where the browser has no Ed25519. */
  async #readAt({ url }: Endpoint, { key, method, query, signal, headers: own }: ReadRequest): Promise<ReadResponse> {
    const sent = ["range", "if-range", "if-none-match", "if-match", "authorization"].flatMap((name) => {
      const value = own.get(name);
      return value === null ? [] : [[name, value]];
    });
    const { status, headers, body } = await this.#ports.fetch(`${url}/o/${encodeKey(key)}?${query ?? ""}`, {
      method,
      headers: Object.fromEntries(sent) as Record<string, string>,
      ...(signal && { signal }),
    });
    // The network has undone the content coding already.
    const { "content-encoding": coding, "content-length": bytes, ...others } = Object.fromEntries(headers as Headers);
    return { status, headers: { ...others, ...(!coding && bytes && { "content-length": bytes }) }, body };
  }

  /** Fetches the plans of `keys`, so that reads of them ask the edge and the buckets at once. */
  async preload(keys: readonly string[]): Promise<void> {
    const headers = new Headers();
    const find = (key: string): Promise<unknown> => this.answer({ key, method: "HEAD", headers });
    const fetch: FetchPort = (url, init) => this.#ports.fetch(url, init);
    await preloadPlans(keys, { pops: this.pops, plans: this.plans, fetch, find, checks: this.#checks });
  }

  /** Forgets the plans, and drops what is stored, of the keys for which `isPurged`. */
  async purge(isPurged: (key: string) => boolean): Promise<void> {
    this.plans.purge(isPurged);
    await this.#ports.store?.purge(isPurged);
  }

  /** Measures the round trips to the PoPs; see `PopSelector.probe`. */
  probe(moved = false): Promise<void> {
    return this.pops.probe(moved);
  }

  /** The requests of all reads to one region. */
  #queue(region: string): FairQueue {
    let queue = this.#queues.get(region);
    if (!queue) this.#queues.set(region, (queue = new FairQueue()));
    return queue;
  }
}
