/**
 * One read of one object. With a known plan it asks the edge and the buckets at once. Without one it asks the buckets
 * as soon as a plan arrives.
 */
import { AgaroseError, isOutdated, toAgaroseError, type FetchPort } from "@agarose/core";
import type { Secrets } from "@agarose/core/encryption";
import { HAS_MESSAGES, HAS_STORE } from "@agarose/core/features";
import { unshared, type ByteRange } from "@agarose/core/http";
import {
  blockNames,
  BRIEF_BYTES_MAX,
  isSmall,
  openRead,
  piecesOf,
  wholeName,
  type BlockMemory,
  type Piece,
  type ReadPolicy,
  type ReadReport,
} from "@agarose/core/read";
import { UNWANTED } from "@agarose/core/sources";
import type { PlanEvent } from "../events/read-events.ts";
import type { Endpoint } from "../common/config.ts";
import type { ClientPorts } from "./client-ports.ts";
import { answerContent, type PlannedAnswer } from "./content-answer.ts";
import { decodedBody, newDecoder } from "./content-codings.ts";
import { forwardCredentials } from "./credentials.ts";
import type { Batches } from "./plans/batches.ts";
import { isAnswer, type Bundle, type FullPlan } from "./plans/bundle-request.ts";
import { findPlan, withSignatures, type FoundPlan, type PlanPorts, type PlanRequest } from "./plans/find-plan.ts";
import { discard, PopCall } from "./plans/pop-call.ts";
import type { ReadResponse } from "../common/http-response.ts";
import type { ReadRequest } from "./read-request.ts";
import { FAILED, sourceId } from "./latency-tracker.ts";
import { ReadTrace, type TracePorts } from "./read-trace.ts";
import { edgeSource, isSending, type Edge } from "./sources/edge-source.ts";
import { Slot, type FairQueue } from "./sources/fair-queue.ts";
import { peerSources } from "./sources/peer-sources.ts";
import { regionSources } from "./sources/region-sources.ts";
import { guessSpan, serves, spanOf } from "./stripe-span.ts";

/** What a read takes from its client. */
export interface ReadPorts extends ClientPorts, PlanPorts, TracePorts {
  /** Peers and credentials are for these PoPs only. */
  readonly configuredPops: readonly Endpoint[];
  readonly batches: Batches;
  /** What small reads have verified. */
  readonly memory: BlockMemory;
  /** Decrypt objects. */
  readonly secrets?: Secrets | undefined;
  /** The queue of a region's requests. */
  readonly queue: (region: string) => FairQueue;
}

/** A response that has bytes. `range` is what of the stored bytes it needs. */
type Ranged = PlannedAnswer & { readonly range: ByteRange };

/** A read of one object by a client. */
export class ClientRead {
  readonly #request: ReadRequest;
  readonly #ports: ReadPorts;
  readonly #trace: ReadTrace;
  readonly #signal: AbortSignal;
  readonly #slot: Slot;
  /** What all of its requests to PoPs have in common. */
  readonly #asked: Pick<PlanRequest, "key" | "signal" | "fetch" | "trace">;
  /** Whether the request has credentials. */
  readonly #isPrivate: boolean;
  /** Set if this is one of many reads of whole objects. */
  readonly #batches: Batches | undefined;
  readonly #onEnd: () => void;
  /** The response that was returned: the read ends when its body ends. */
  #returned: ReadResponse | undefined;

  /** @param onEnd called once when the read is over. */
  constructor(request: ReadRequest, ports: ReadPorts, onEnd: () => void) {
    const slot = new Slot(request.headers.get("priority"));
    const forward = forwardCredentials(request, ports.configuredPops);
    this.#request = request;
    this.#ports = ports;
    this.#signal = request.signal ?? new AbortController().signal;
    this.#onEnd = onEnd;
    this.#slot = slot;
    this.#isPrivate = forward !== undefined;
    const fetch: FetchPort = (url, init) => {
      const prioritized = { ...init, priority: slot.priority };
      return ports.fetch(...(forward?.(url, prioritized) ?? [url, prioritized]));
    };
    const isWhole = request.method === "GET" && !request.headers.get("range");
    this.#batches = isWhole && !forward && ports.batches.joins() ? ports.batches : undefined;
    this.#trace = new ReadTrace(request, ports);
    this.#asked = { key: request.key, signal: this.#signal, fetch, trace: this.#trace.id };
  }

  /** Resolves when the first stripe is ready. */
  async answer(): Promise<ReadResponse> {
    try {
      const known = this.#ports.plans.get(this.#request.key);
      const isKnown = known && !(this.#batches && isSmall(known.manifest) && !this.#holds(known));
      const response = (isKnown && (await this.#fromKnown(known))) || (await this.#fromFresh(known));
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

  /**
   * Asks the edge and the buckets at once. Undefined when the known plan is of no use: another PoP is nearest now, or
   * fewer than k chunks are available.
   */
  async #fromKnown(known: FullPlan): Promise<ReadResponse | undefined> {
    const [pop] = this.#ports.pops.byDistance();
    if (pop && known.pop !== "" && known.pop !== pop.name) return undefined;
    const head = await this.#answerOf(known);
    if (!this.#wantsBytes(head)) return this.#bodiless("known", known, head);
    const isFailed = ({ chunk }: Piece): boolean =>
      this.#ports.latencies.estimate(sourceId("region", known.manifest.placement[chunk]!)) === FAILED;
    // The PoP sends what k other regions would have to replace.
    if (pop && this.#isBrief(head) && this.#missing(known, head)?.some(isFailed)) return undefined;

    const stop = new AbortController();
    const changed = Promise.withResolvers<Bundle>();
    const edge = this.#callPop(known, head, changed.resolve);
    const opened = this.#open("known", known, head, edge, AbortSignal.any([this.#signal, stop.signal]));
    try {
      const first = await Promise.race([opened, changed.promise]);
      if ("status" in first) {
        void changed.promise.then(discard);
        return first;
      }
      // The object has changed before a byte was returned: continue with the new version's bundle.
      opened.then(({ body }) => body?.cancel()).catch(() => {});
      stop.abort(UNWANTED);
      return await this.#fromPlan("edge", first.plan, first);
    } catch (error) {
      void changed.promise.then(discard);
      if (toAgaroseError(error).code !== "NOT_ENOUGH_CHUNKS") throw error;
      this.#ports.plans.delete(this.#request.key);
      return undefined;
    }
  }

  async #fromFresh(known: FullPlan | undefined): Promise<ReadResponse> {
    const { key, method, headers } = this.#request;
    const store = HAS_STORE ? this.#ports.store : undefined;
    const guessed = guessSpan(method, headers.get("range"));
    const kept = known ?? (store && (await store.plan(key)));
    // Stripes that the store holds need not be sent again: ask for the plan only.
    const span = kept && store?.holds(kept.manifest, guessed) ? { from: 0, to: 0 } : guessed;
    const latest = kept ?? this.#ports.plans.latest(key);
    const range = this.#rangeHeader();
    const batches = HAS_STORE && span !== guessed ? undefined : this.#batches;
    const request = { ...this.#asked, known: latest, span, range, batches, isPrivate: this.#isPrivate };
    const found = await findPlan(request, this.#ports).catch(async (error: AgaroseError): Promise<FoundPlan> => {
      // The object is gone, or private now.
      if (store && isAnswer(error)) await store.purge((purged) => purged === key);
      if (!kept || isAnswer(error) || this.#signal.aborted) throw error;
      return { plan: kept };
    });
    const { plan, bundle } = found;
    try {
      const from = bundle ? "edge" : plan === kept ? "kept" : "region";
      return await this.#fromPlan(from, plan, bundle);
    } catch (error) {
      discard(bundle);
      if (!isOutdated(error)) throw error;
      // The PoP's manifest may name a version that is gone: the buckets decide.
      const current = await findPlan({ ...request, bucketsOnly: true }, this.#ports);
      if (current.plan.version === plan.version) throw error;
      return this.#fromPlan("region", current.plan, undefined);
    }
  }

  async #fromPlan(from: PlanEvent["from"], plan: FullPlan, bundle: Bundle | undefined): Promise<ReadResponse> {
    const head = await this.#answerOf(plan);
    if (this.#wantsBytes(head)) return this.#open(from, plan, head, this.#edgeBehind(bundle, plan, head), this.#signal);
    discard(bundle);
    return this.#bodiless(from, plan, head);
  }

  async #answerOf(plan: FullPlan): Promise<PlannedAnswer> {
    const answer = await answerContent(plan, this.#request, this.#ports.secrets);
    answer.codings?.forEach(newDecoder);
    return plan.private ? unshared(answer) : answer;
  }

  #wantsBytes(head: PlannedAnswer): head is Ranged {
    return this.#request.method === "GET" && head.range !== undefined;
  }

  /** The bundle if it has the requested stripes; otherwise a new call for one that has. */
  #edgeBehind(bundle: Bundle | undefined, plan: FullPlan, head: Ranged): Edge | undefined {
    if (!bundle) return undefined;
    if (
      bundle.range ? bundle.range === this.#rangeHeader(head) : serves(bundle.span, spanOf(plan.manifest, head.range))
    ) {
      this.#trace.bundleArrived(bundle);
      return { ...bundle, bundle: Promise.resolve(bundle), hasArrived: true };
    }
    discard(bundle);
    // The PoP has counted a read of which it has nothing.
    return bundle.lasting?.cached.length === 0 ? undefined : this.#callPop(plan, head, discard);
  }

  /** Asks the nearest PoP for the chunks of a known plan. `onChanged` gets the bundle of a newer version. */
  #callPop(known: FullPlan, head: Ranged, onChanged: (bundle: Bundle) => void): Edge | undefined {
    const { plans, pops } = this.#ports;
    const store = HAS_STORE ? this.#ports.store : undefined;
    const [pop] = pops.byDistance();
    const { key } = this.#request;
    const span = spanOf(known.manifest, head.range);
    const pieces = this.#missing(known, head);
    if (!pop || !known.manifest.bytes || pieces?.length === 0) return undefined;
    if (store?.holds(known.manifest, span)) return undefined;
    const { start, end } = head.range;
    const range = this.#rangeHeader(head) ?? (pieces && `bytes=${start}-${end - 1}`);
    const request = { ...this.#asked, pop, span, range, leaves: true, known };
    const { purges } = plans;
    return new PopCall(request, this.#ports, (received) => {
      this.#trace.bundleArrived(received);
      const bundle = plans.learnBundle(key, received, purges);
      const { version } = bundle.plan;
      if (version === known.version) return bundle;
      onChanged(bundle);
      throw new AgaroseError("CHUNK_MISSING", HAS_MESSAGES && `${key} now has version ${version}`, { key });
    });
  }

  async #open(
    from: PlanEvent["from"],
    plan: FullPlan,
    head: Ranged,
    edge: Edge | undefined,
    signal: AbortSignal,
  ): Promise<ReadResponse> {
    const { configuredPops, hedging, latencies, savesData } = this.#ports;
    const store = HAS_STORE ? this.#ports.store : undefined;
    const { manifest } = plan;
    const delta = savesData() ? 0 : hedging.delta(plan.delta);
    const believed = { plan };
    const pieces = this.#pieces(plan, head);
    const cached = edge && edgeSource(edge, believed, latencies, pieces);
    const slot = this.#slot;
    const { fetch } = this.#asked;
    const sign = (expired: FullPlan): Promise<FullPlan> =>
      withSignatures(expired, { ...this.#asked, signal }, this.#ports);
    const sources = [
      ...(cached ? [cached] : []),
      ...peerSources(believed, configuredPops, { fetch, latencies }),
      ...regionSources(plan, { ...this.#ports, fetch, slot, sign }),
    ];
    this.#trace.planned(from, { ...plan, delta }, spanOf(manifest, head.range).from, sources, pieces);
    let response: ReadResponse | undefined;
    const target = { manifest, sources, signal, range: head.range };
    const sharing = store && !plan.private && store.sharing(manifest);
    const policy: ReadPolicy = {
      delta,
      hedge: (...late) => !isSending(edge, latencies) && hedging.hedge(...late),
      // A PoP sends all pieces of a brief range with one more request. `#fromKnown` makes it.
      fallback: edge?.hasArrived === false && this.#isBrief(head) ? "none" : "stripe",
      ...(store && { stripes: true }),
    };
    const { body, report } = await openRead({ ...target, ...sharing }, this.#ports, policy, {
      onRequest: (record) => this.#trace.request(record),
      onEnd: (ended, error) => {
        edge?.release?.();
        // A response that was not returned may be replaced by another attempt.
        if (!response || response !== this.#returned) return;
        this.#end(head.status, head.range.end - head.range.start, ended, error);
      },
    });
    this.#trace.firstStripe();
    const headers = {
      ...head.headers,
      "server-timing": this.#trace.serverTiming(report),
      "x-agarose-read": this.#trace.kind(report, head.range.end),
    };
    response = { status: head.status, headers, body: decodedBody(head.content?.(body) ?? body, head.codings) };
    return response;
  }

  /** Whether memory has a small object whole. */
  #holds({ manifest }: FullPlan): boolean {
    return this.#ports.memory.holds([wholeName(manifest)]);
  }

  /** What of a small object or range is not in memory. */
  #missing(plan: FullPlan, head: Ranged): Piece[] | undefined {
    const { memory } = this.#ports;
    if (this.#holds(plan)) return [];
    return this.#pieces(plan, head)?.filter((piece) => !memory.holds(blockNames(plan.manifest, piece)));
  }

  /** What a small range lies in. A store keeps whole stripes. */
  #pieces({ manifest }: FullPlan, { range }: Ranged): Piece[] | undefined {
    return HAS_STORE && this.#ports.store ? undefined : piecesOf(manifest, range);
  }

  /** Whether a PoP that is asked for this range sends all of it. */
  #isBrief(head: Ranged): unknown {
    const { range } = head;
    return this.#rangeHeader(head) && range.end - range.start <= BRIEF_BYTES_MAX;
  }

  /** The `Range` of the request, unless the answer may not follow it. */
  #rangeHeader(head?: Ranged): string | undefined {
    const { headers, method } = this.#request;
    const keepsStripes = HAS_STORE && this.#ports.store;
    if (keepsStripes || head?.codings || method !== "GET" || headers.get("if-range")) return undefined;
    return headers.get("range") ?? undefined;
  }

  #bodiless(from: PlanEvent["from"], plan: FullPlan, { status, headers }: PlannedAnswer): ReadResponse {
    this.#trace.planned(from, plan, 0, []);
    return { status, headers: { ...headers, "server-timing": this.#trace.serverTiming() }, body: null };
  }

  #end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    this.#trace.end(status, bytes, report, cause);
    this.#onEnd();
  }
}
