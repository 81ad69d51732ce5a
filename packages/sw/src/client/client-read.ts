/**
 * One read of one object. With a known plan it asks the edge and the buckets at once. Without one it asks the buckets
 * as soon as a plan arrives.
 */
import { isOutdated, toAgaroseError, type AgaroseError, type FetchPort } from "@agarose/core";
import type { Secrets } from "@agarose/core/encryption";
import { HAS_STORE } from "@agarose/core/features";
import { isSmall, type BlockMemory, type Piece, type ReadReport, type RequestRecord } from "@agarose/core/read";
import { UNWANTED } from "@agarose/core/sources";
import type { Endpoint } from "../common/config.ts";
import type { ReadResponse } from "../common/http-response.ts";
import type { ClientPorts } from "./client-ports.ts";
import { forwardCredentials } from "./credentials.ts";
import type { HedgeBudget } from "./hedge-budget.ts";
import { FAILED, sourceId } from "./latency-tracker.ts";
import { holdsWhole, plannedRead, rangeHeader, type ReadParts } from "./planned-read.ts";
import type { Batches } from "./plans/batches.ts";
import { isAnswer, type Bundle, type FullPlan } from "./plans/bundle-request.ts";
import {
  bucketSources,
  findPlan,
  knownPlan,
  offlinePlan,
  type FoundPlan,
  type PlanPorts,
} from "./plans/plan-source.ts";
import { discard } from "./plans/pop-call.ts";
import type { ReadRequest } from "./read-request.ts";
import { ReadTrace, type TracePorts } from "./read-trace.ts";
import { Slot, type FairQueue } from "./sources/fair-queue.ts";
import { guessSpan } from "./stripe-span.ts";

/** What a read takes from its client. */
export interface ReadPorts extends ClientPorts, PlanPorts, TracePorts {
  /** Peers and credentials are for these PoPs only. */
  readonly configuredPops: readonly Endpoint[];
  readonly hedging: HedgeBudget;
  readonly batches: Batches;
  /** What small reads have verified. */
  readonly memory: BlockMemory;
  /** Decrypt objects. */
  readonly secrets?: Secrets | undefined;
  /** The queue of a region's requests. */
  readonly queue: (region: string) => FairQueue;
}

/** A read of one object by a client. */
export class ClientRead {
  readonly #parts: ReadParts;
  readonly #signal: AbortSignal;
  /** Whether the request has credentials. */
  readonly #isPrivate: boolean;
  /** Set if this is one of many reads of whole objects. */
  readonly #batches: Batches | undefined;
  readonly #onEnd: () => void;
  /** The requests for its chunks, in the order of their start. */
  readonly #requests = new Set<RequestRecord>();
  /** The k of its latest plan. */
  #k = 0;
  /** The response that was returned: the read ends when its body ends. */
  #returned: ReadResponse | undefined;

  /** @param onEnd called once when the read is over. */
  constructor(request: ReadRequest, ports: ReadPorts, onEnd: () => void) {
    const slot = new Slot(request.headers.get("priority"));
    const forward = forwardCredentials(request, ports.configuredPops);
    const signal = (this.#signal = request.signal ?? new AbortController().signal);
    this.#onEnd = onEnd;
    this.#isPrivate = forward !== undefined;
    const fetch: FetchPort = (url, init) => {
      const prioritized = { ...init, priority: slot.priority };
      return ports.fetch(...(forward?.(url, prioritized) ?? [url, prioritized]));
    };
    const isWhole = request.method === "GET" && !request.headers.get("range");
    this.#batches = isWhole && !forward && ports.batches.joins() ? ports.batches : undefined;
    const trace = new ReadTrace(request, ports);
    this.#parts = {
      request,
      ports,
      trace,
      slot,
      asked: { key: request.key, signal, fetch, trace: trace.id },
      onRequest: (record) => {
        this.#requests.add(record);
        trace.request(record);
      },
      onEnd: (response, ...ended) => {
        // A response that was not returned may be replaced by another attempt.
        if (response && response === this.#returned) this.#end(response.status, ...ended);
      },
    };
  }

  /** Resolves when the first stripe is ready. */
  async answer(): Promise<ReadResponse> {
    const { request, ports } = this.#parts;
    try {
      const known = ports.plans.get(request.key);
      const response = (known && (await this.#fromKnown(known))) ?? (await this.#fromFresh(known));
      this.#signal.throwIfAborted();
      this.#returned = response;
      if (response.body === null) this.#end(response.status, 0);
      return response;
    } catch (cause) {
      // A page may give any reason for its leaving.
      const error = toAgaroseError(cause, this.#signal.aborted ? "ABORTED" : undefined);
      this.#end(error.httpStatus, 0, undefined, error);
      throw error;
    }
  }

  /** Asks the edge and the buckets at once. Undefined when the known plan is of no use, or too few chunks are there. */
  async #fromKnown(plan: FullPlan): Promise<ReadResponse | undefined> {
    const { request, ports } = this.#parts;
    const { latencies, memory, plans, pops } = ports;
    const isBatched = this.#batches && isSmall(plan.manifest) && !holdsWhole(plan, memory);
    const found = knownPlan(plan, Boolean(isBatched), ports);
    if (!found) return undefined;
    const read = await plannedRead(found, this.#parts);
    this.#k = plan.manifest.k;
    if (!read.range) return read.bodiless();
    const isFailed = ({ chunk }: Piece): boolean =>
      latencies.estimate(sourceId("region", plan.manifest.placement[chunk]!)) === FAILED;
    // The PoP sends what k other regions would have to replace.
    if (pops.byDistance()[0] && read.isBrief && read.missing?.some(isFailed)) return undefined;

    const stop = new AbortController();
    const changed = Promise.withResolvers<Bundle>();
    const edge = read.call(changed.resolve);
    const opened = read.open(edge, AbortSignal.any([this.#signal, stop.signal]));
    try {
      const first = await Promise.race([opened, changed.promise]);
      if ("status" in first) {
        void changed.promise.then(discard);
        return first;
      }
      // The object has changed before a byte was returned: continue with the new version's bundle.
      opened.then(({ body }) => body?.cancel()).catch(() => {});
      stop.abort(UNWANTED);
      return await this.#fromPlan({ from: "edge", plan: first.plan, bundle: first });
    } catch (error) {
      void changed.promise.then(discard);
      if (toAgaroseError(error).code !== "NOT_ENOUGH_CHUNKS") throw error;
      plans.delete(request.key);
      return undefined;
    }
  }

  async #fromFresh(known: FullPlan | undefined): Promise<ReadResponse> {
    const { request, ports, asked } = this.#parts;
    const { key, method, headers } = request;
    const store = HAS_STORE ? ports.store : undefined;
    const guessed = guessSpan(method, headers.get("range"));
    const kept = known ?? (store && (await store.plan(key)));
    // Stripes that the store holds need not be sent again: ask for the plan only.
    const span = kept && store?.holds(kept.manifest, guessed) ? { from: 0, to: 0 } : guessed;
    const wanted = {
      ...asked,
      known: kept ?? ports.plans.latest(key),
      span,
      range: rangeHeader(request, ports),
      batches: HAS_STORE && span !== guessed ? undefined : this.#batches,
      isPrivate: this.#isPrivate,
    };
    const found = await findPlan(wanted, ports).catch(async (error: AgaroseError) => {
      // The object is gone, or private now.
      if (store && isAnswer(error)) await store.purge((purged) => purged === key);
      return offlinePlan(error, kept, wanted);
    });
    try {
      return await this.#fromPlan(found);
    } catch (error) {
      discard(found.bundle);
      if (!isOutdated(error)) throw error;
      // The PoP's manifest may name a version that is gone: the buckets decide.
      const current = await findPlan(wanted, ports, bucketSources(wanted, ports));
      if (current.plan.version === found.plan.version) throw error;
      return this.#fromPlan(current);
    }
  }

  async #fromPlan(found: FoundPlan): Promise<ReadResponse> {
    const read = await plannedRead(found, this.#parts);
    this.#k = found.plan.manifest.k;
    if (read.range) return read.open(read.edge(), this.#signal);
    discard(found.bundle);
    return read.bodiless();
  }

  #end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    const { trace, ports } = this.#parts;
    // The reader reports its last cancellations in this turn, after the end of the read.
    ports.clock.after(0, () => ports.hedging.observe(this.#k, this.#requests));
    trace.end(status, bytes, report, cause);
    this.#onEnd();
  }
}
