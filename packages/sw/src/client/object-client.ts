/**
 * A client that reads objects, and keeps plans and measurements between reads. A service worker has one, and so has a
 * page without a worker.
 */
import { toAgaroseError } from "@agarose/core";
import { Secrets } from "@agarose/core/encryption";
import { HAS_ENCRYPTION, HAS_STORE } from "@agarose/core/features";
import { parseKey } from "@agarose/core/format";
import { BlockMemory, Line } from "@agarose/core/read";
import { UNWANTED } from "@agarose/core/sources";
import { clientTrust, type ClientConfig } from "../common/config.ts";
import type { ClientPorts } from "./client-ports.ts";
import { clientRead } from "./client-read.ts";
import { endOf, readAtPops } from "./pop-object.ts";
import { HedgeBudget } from "./hedge-budget.ts";
import { LatencyTracker } from "./latency-tracker.ts";
import type { ReadPorts } from "./planned-read.ts";
import { Batches } from "./plans/batches.ts";
import { PlanStore } from "./plans/plan-store.ts";
import { PopSelector } from "./plans/pop-selector.ts";
import { preloadPlans } from "./plans/preload-plans.ts";
import { FairQueue } from "./sources/fair-queue.ts";
import type { ReadResponse } from "../common/http-response.ts";
import type { ReadRequest } from "./read-request.ts";

/** Memory for small objects, and for blocks of small ranges. */
const BLOCKS_BYTES_MAX = 8 * 1024 * 1024;

/**
 * After a read, the PoPs are probed when no other has begun for so long. A page that loads would delay the probes of
 * the PoP that serves it.
 */
export const QUIET_MS = 1_000;

/** Reads objects by one configuration. */
export class ObjectClient {
  readonly config: ClientConfig;
  readonly latencies: LatencyTracker;
  readonly pops: PopSelector;
  readonly plans: PlanStore;
  readonly hedging: HedgeBudget;
  /** Options of every read. */
  readonly #ports: ReadPorts;
  /** How many reads have begun. */
  #reads = 0;

  constructor(config: ClientConfig, given: ClientPorts) {
    const { clock } = given;
    const { pops: configuredPops } = config;
    const ports = { ...given, trust: clientTrust(config), configuredPops };
    this.config = config;
    this.hedging = new HedgeBudget();
    const latencies = (this.latencies = new LatencyTracker(clock));
    const pops = (this.pops = new PopSelector({ ...ports, pops: configuredPops, latencies }));
    const plans = (this.plans = new PlanStore({ config, clock, ...(HAS_STORE && { store: given.store }) }));
    /** By region: the requests of all reads to it. */
    const queues = new Map<string, FairQueue>();
    this.#ports = {
      ...ports,
      latencies,
      pops,
      plans,
      hedging: this.hedging,
      ...(HAS_ENCRYPTION && { secrets: new Secrets(config.encryption) }),
      line: new Line(clock),
      memory: new BlockMemory(BLOCKS_BYTES_MAX, clock),
      batches: new Batches({ ...ports, latencies }),
      queue: (region) => {
        const queue = queues.get(region) ?? new FairQueue();
        queues.set(region, queue);
        return queue;
      },
    };
  }

  /**
   * Responds to a GET or HEAD of an object. Resolves when the first stripe is ready, and rejects with an AgaroseError
   * when the read fails before that. A read that fails later errors the body.
   *
   * @param onEnd called once when a read that was answered is over; not when this rejects.
   */
  async answer(given: ReadRequest, onEnd: () => void = () => {}): Promise<ReadResponse> {
    parseKey(given.key);
    /** Ends what is under way beside chunks: calls of PoPs for plans, signatures, and the rest of a body. */
    const left = new AbortController();
    const request = { ...given, signal: AbortSignal.any([left.signal, ...(given.signal ? [given.signal] : [])]) };
    const reads = ++this.#reads;
    // The first one cannot wait for the order of the PoPs.
    if (reads < 2) void this.probe();
    const probeLater = (): void => {
      this.#ports.clock.after(QUIET_MS, () => {
        if (reads === this.#reads) void this.probe();
      });
    };
    const over = (error?: unknown): void => {
      probeLater();
      // A read that is complete may still learn from its PoP, and a PoP that is due counts as late first.
      if (error) this.#ports.clock.after(0, () => void left.abort(UNWANTED));
      onEnd();
    };
    try {
      return await clientRead(request, this.#ports, over);
    } catch (error) {
      probeLater();
      const { code } = toAgaroseError(error);
      if (code === "MANIFEST_NEWER") this.#ports.update?.();
      else if (!/_UNSUPPORTED$|^OBJECT_PLAIN$/.test(code) && (!HAS_ENCRYPTION || code !== "SECRET_MISSING"))
        throw error;
      if (!this.config.pops[0]) throw error;
      // A PoP checks signatures where the browser has no Ed25519, and knows formats and secrets that this client does
      // not. What the worker cannot decode, the browser's network does. A plain object has no chunks.
      const { body, ...head } = await readAtPops(request, this.#ports, code === "CODING_UNSUPPORTED");
      if (!body) onEnd();
      return { ...head, body: body && endOf(body, over) };
    }
  }

  /**
   * Fetches the plans of `keys`, so that reads of them ask the edge and the buckets at once. Rejects with the error of
   * one of those that have none.
   */
  async preload(keys: readonly string[]): Promise<void> {
    const headers = new Headers();
    await preloadPlans(keys, this.#ports, (key) => this.answer({ key, method: "HEAD", headers }));
  }

  /** `preload` of objects that have changed. */
  async update(keys: readonly string[]): Promise<void> {
    this.plans.purge((key) => keys.includes(key));
    await this.preload(keys);
  }

  /** Forgets the plans, and drops what is stored, of the keys for which `isPurged`. */
  async purge(isPurged: (key: string) => boolean): Promise<void> {
    this.plans.purge(isPurged);
    if (HAS_STORE) await this.#ports.store?.purge(isPurged);
  }

  /** Measures the round trips to the PoPs; see `PopSelector.probe`. */
  probe(moved?: boolean): Promise<void> {
    return this.pops.probe(moved);
  }
}
