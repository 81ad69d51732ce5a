/**
 * One read of one object. With a known plan it asks the edge and the buckets at once. Without one it asks the buckets
 * as soon as a plan arrives.
 */
import { isOutdated, toAgaroseError, type AgaroseError, type FetchPort } from "@agarose/core";
import { HAS_STORE } from "@agarose/core/features";
import { isSmall, type ReadReport } from "@agarose/core/read";
import { UNWANTED } from "@agarose/core/sources";
import type { ReadResponse } from "../common/http-response.ts";
import { forwardCredentials } from "./credentials.ts";
import { holdsWhole, plannedRead, rangeHeader, type Reading, type ReadPorts } from "./planned-read.ts";
import type { Batches } from "./plans/batches.ts";
import { isAnswer, type Bundle, type FullPlan } from "./plans/bundle-request.ts";
import { bucketSources, findPlan, knownPlan, offlinePlan, type FoundPlan } from "./plans/plan-source.ts";
import { discard } from "./plans/pop-call.ts";
import type { ReadRequest } from "./read-request.ts";
import { ReadTrace } from "./read-trace.ts";
import { Slot } from "./sources/fair-queue.ts";
import { guessSpan } from "./stripe-span.ts";

/** A read of one object by a client. */
export class ClientRead implements Reading {
  readonly request: ReadRequest;
  readonly ports: ReadPorts;
  readonly trace: ReadTrace;
  readonly slot: Slot;
  readonly asked: Reading["asked"];
  /** Set if this is one of many reads of whole objects. */
  readonly #batches: Batches | undefined;
  readonly #onOver: () => void;
  /** The response that was returned: the read ends when its body ends. */
  #returned: ReadResponse | undefined;

  /** @param onOver called once when the response that `answer` resolves to is over. */
  constructor(request: ReadRequest, ports: ReadPorts, onOver: () => void) {
    const { key, method, headers, signal = new AbortController().signal } = request;
    const slot = (this.slot = new Slot(headers.get("priority")));
    const forward = forwardCredentials(request, ports.configuredPops);
    this.trace = new ReadTrace(request, ports);
    this.request = request;
    this.ports = ports;
    this.#onOver = onOver;
    const fetch: FetchPort = (url, init) => {
      const prioritized = { ...init, priority: slot.priority };
      return ports.fetch(...(forward?.(url, prioritized) ?? [url, prioritized]));
    };
    this.#batches =
      method === "GET" && !headers.get("range") && !forward && ports.batches.joins() ? ports.batches : undefined;
    this.asked = { key, signal, fetch, trace: this.trace.id, isPrivate: forward !== undefined };
  }

  /** Resolves when the first stripe is ready. */
  async answer(): Promise<ReadResponse> {
    const { signal, key } = this.asked;
    const { memory, plans } = this.ports;
    try {
      const known = plans.get(key);
      const isBatched = this.#batches && known && isSmall(known.manifest) && !holdsWhole(known, memory);
      const found = known && !isBatched && knownPlan(known, this.ports);
      const response = (found && (await this.#fromKnown(found))) || (await this.#fromFresh(known));
      signal.throwIfAborted();
      this.#returned = response;
      if (response.body === null) this.#end(response.status, 0);
      return response;
    } catch (cause) {
      // A page may give any reason for its leaving.
      const error = toAgaroseError(cause, signal.aborted ? "ABORTED" : undefined);
      this.trace.end(error.httpStatus, 0, undefined, error);
      throw error;
    }
  }

  /** Asks the edge and the buckets at once. Undefined when too few chunks are there, or the read is left to the PoP. */
  async #fromKnown(found: FoundPlan): Promise<ReadResponse | undefined> {
    const { key, signal } = this.asked;
    const read = await plannedRead(found, this);
    if (read.isLeft()) return undefined;
    const stop = new AbortController();
    const changed = Promise.withResolvers<Bundle>();
    const opened = read.open(AbortSignal.any([signal, stop.signal]), read.call(changed.resolve));
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
      this.ports.plans.delete(key);
      return undefined;
    }
  }

  async #fromFresh(known: FullPlan | undefined): Promise<ReadResponse> {
    const { request, ports } = this;
    const { key, method, headers } = request;
    const store = HAS_STORE ? ports.store : undefined;
    const guessed = guessSpan(method, headers.get("range"));
    const kept = known ?? (store && (await store.plan(key)));
    // Stripes that the store holds need not be resent: ask for the plan only.
    const span = kept && store?.holds(kept.manifest, guessed) ? { from: 0, to: 0 } : guessed;
    const wanted = {
      ...this.asked,
      known: kept ?? ports.plans.latest(key),
      span,
      range: rangeHeader(request, ports),
      batches: HAS_STORE && span !== guessed ? undefined : this.#batches,
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
    return (await plannedRead(found, this)).open();
  }

  onEnd(response: ReadResponse | undefined, bytes: number, report: ReadReport, error?: unknown): void {
    // A response that was not returned may be replaced by another attempt.
    if (response && response === this.#returned) this.#end(response.status, bytes, report, error);
  }

  #end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    this.trace.end(status, bytes, report, cause);
    this.#onOver();
  }
}
