/**
 * One read of one object. With a plan that is known, the edge and the buckets are asked in the same moment; without one,
 * the buckets follow as soon as a plan has come (`locate`).
 */
import {
  AgaroseError,
  HAS_MESSAGES,
  isOutdated,
  objectAnswer,
  openRead,
  toAgaroseError,
  type ByteRange,
  type FetchPort,
  type ObjectAnswer as Head,
  type ReadReport,
} from "@agarose/core";
import { isAnswer, type Bundle, type FullPlan } from "./plans/bundle-request.ts";
import type { Endpoint } from "../shared/config.ts";
import { Turn, type FairQueue } from "./sources/fair-queue.ts";
import { locate, type Located } from "./plans/find-plan.ts";
import { proofOf } from "./credentials.ts";
import type { ObjectClient } from "./object-client.ts";
import { discard, PopCall } from "./plans/pop-call.ts";
import { peerSources } from "./sources/peer-sources.ts";
import type { PlanEvent } from "../events/read-events.ts";
import { ReadTrace } from "./read-trace.ts";
import { edgeSource, regionSources } from "./sources/region-sources.ts";
import { guessSpan, serves, spanOf } from "./stripe-span.ts";

export interface ObjectRequest {
  readonly key: string;
  readonly method: "GET" | "HEAD";
  readonly headers: { get(name: string): string | null };
  /** Of its URL: where the key is private, `expires` and `signature`. */
  readonly query?: URLSearchParams;
  readonly signal?: AbortSignal | undefined;
}

export interface ObjectAnswer {
  readonly status: number;
  readonly headers: Record<string, string>;
  /** Null for HEAD, 304 and 412. It errors when the read cannot be completed; it never ends short. */
  readonly body: ReadableStream<Uint8Array> | null;
}

/** Who sends the cached chunks of a read: a bundle whose plan is here, or a call that may still be under way. */
export interface Edge {
  readonly pop: Endpoint;
  readonly bundle: Promise<Bundle>;
  /** Whether the plan is here: a chunk takes a round trip less from then on. */
  readonly hasArrived: boolean;
  /** Ends it; calling twice does no harm. */
  release(): void;
}

type Ranged = Head & { readonly range: ByteRange };

export class ObjectRead {
  readonly #client: ObjectClient;
  readonly #request: ObjectRequest;
  readonly #trace: ReadTrace;
  readonly #signal: AbortSignal;
  readonly #turn: Turn;
  readonly #fetch: FetchPort;
  readonly #onEnd: () => void;
  /** The answer that was handed out: the end of its body is the end of this read. */
  #handedOut: ObjectAnswer | undefined;

  /** @param onEnd told once when the read is over, however it ended. */
  constructor(client: ObjectClient, request: ObjectRequest, onEnd: () => void) {
    const { config, ports } = client;
    const { headers, signal } = request;
    this.#client = client;
    this.#request = request;
    this.#signal = signal ?? new AbortController().signal;
    this.#onEnd = onEnd;
    const turn = new Turn(headers.get("priority"));
    this.#turn = turn;
    const prove = proofOf(request, config.pops);
    this.#fetch = (url, init) => ports.fetch(...prove(url, { ...init, priority: turn.priority }));
    this.#trace = new ReadTrace(client, request);
  }

  /** Resolves when the first stripe is ready. */
  async answer(): Promise<ObjectAnswer> {
    try {
      const known = this.#client.plans.get(this.#request.key);
      const answer = (known && (await this.#fromKnown(known))) ?? (await this.#fromFresh(known));
      this.#signal.throwIfAborted();
      this.#handedOut = answer;
      if (answer.body === null) this.#end(answer.status, 0);
      return answer;
    } catch (cause) {
      const error = toAgaroseError(cause);
      this.#end(error.httpStatus, 0, undefined, error);
      throw error;
    }
  }

  /**
   * Asks the edge and the buckets at once. Undefined when the known plan is of no use: another PoP is nearer now, or too
   * few of the chunks can be had.
   */
  async #fromKnown(known: FullPlan): Promise<ObjectAnswer | undefined> {
    const [pop] = this.#client.popsByDistance();
    if (pop && known.pop !== "" && known.pop !== pop.name) return undefined;
    const head = objectAnswer(known.manifest, this.#request.headers, this.#request.method);
    if (!this.#wantsBytes(head)) return this.#bodiless("known", known, head);

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
      // The object has changed and nothing of the old version was handed out: the bundle goes on with the new one.
      opened.then(({ body }) => body?.cancel()).catch(() => {});
      stop.abort();
      return await this.#fromPlan("edge", first.plan, first);
    } catch (error) {
      void changed.promise.then(discard);
      if (toAgaroseError(error).code !== "NOT_ENOUGH_CHUNKS") throw error;
      this.#client.plans.delete(this.#request.key);
      return undefined;
    }
  }

  async #fromFresh(known: FullPlan | undefined): Promise<ObjectAnswer> {
    const { key, method, headers } = this.#request;
    const { store } = this.#client.ports;
    const guessed = guessSpan(method, headers.get("range"));
    const kept = known ?? (await store?.plan(key));
    // What is here already need not be sent once more: the plan alone is asked for.
    const span = kept && store?.holds(kept.manifest, guessed) ? { from: 0, to: 0 } : guessed;
    const request = { key, known: kept, span, signal: this.#signal, fetch: this.#fetch };
    const located = await locate(this.#client, request).catch(async (error: AgaroseError): Promise<Located> => {
      // Gone, or not for everybody any more.
      if (isAnswer(error)) await store?.purge((purged) => purged === key);
      if (!kept || isAnswer(error) || this.#signal.aborted) throw error;
      return { plan: kept };
    });
    const { plan, bundle } = located;
    try {
      const from = bundle ? "edge" : plan === kept ? "kept" : "region";
      return await this.#fromPlan(from, plan, bundle);
    } catch (error) {
      if (!isOutdated(error)) throw error;
      // The PoP's manifest may be of a version that is gone: what the buckets say decides.
      const current = await locate(this.#client, { ...request, bucketsOnly: true });
      if (current.plan.version === plan.version) throw error;
      return this.#fromPlan("region", current.plan, undefined);
    }
  }

  async #fromPlan(from: PlanEvent["from"], plan: FullPlan, bundle: Bundle | undefined): Promise<ObjectAnswer> {
    const head = this.#headOf(plan, bundle);
    if (this.#wantsBytes(head)) return this.#open(from, plan, head, this.#edgeBehind(bundle, plan, head), this.#signal);
    discard(bundle);
    return this.#bodiless(from, plan, head);
  }

  /** `objectAnswer`, ending the bundle when the request cannot be met. */
  #headOf(plan: FullPlan, bundle: Bundle | undefined): Head {
    try {
      return objectAnswer(plan.manifest, this.#request.headers, this.#request.method);
    } catch (error) {
      discard(bundle);
      throw error;
    }
  }

  #wantsBytes(head: Head): head is Ranged {
    return this.#request.method === "GET" && head.range !== undefined;
  }

  /** The bundle as it is when it has the stripes that are wanted; else another one that has. */
  #edgeBehind(bundle: Bundle | undefined, plan: FullPlan, head: Ranged): Edge | undefined {
    if (!bundle) return undefined;
    if (serves(bundle.span, spanOf(plan.manifest, head.range))) {
      this.#trace.bundleArrived();
      return { pop: bundle.pop, bundle: Promise.resolve(bundle), hasArrived: true, release: () => {} };
    }
    discard(bundle);
    return this.#callPop(plan, head, discard);
  }

  /** Asks the nearest PoP for the chunks of a plan that is known. A newer version is told to `onChanged`. */
  #callPop(known: FullPlan, head: Ranged, onChanged: (bundle: Bundle) => void): Edge | undefined {
    const client = this.#client;
    const [pop] = client.popsByDistance();
    const { key } = this.#request;
    const span = spanOf(known.manifest, head.range);
    if (!pop || known.manifest.bytes === 0) return undefined;
    if (client.ports.store?.holds(known.manifest, span)) {
      client.ports.store.countRead(key);
      client.reporting.due();
      return undefined;
    }
    const call = new PopCall(client, { key, pop, span, known, signal: this.#signal, fetch: this.#fetch });
    call.bundle = call.bundle.then((heard) => {
      this.#trace.bundleArrived();
      const current = { ...heard, plan: client.learn(key, heard.plan) };
      if (current.plan.version === known.version) return current;
      onChanged(current);
      throw new AgaroseError("CHUNK_MISSING", HAS_MESSAGES && `${key} has version ${current.plan.version} by now`, {
        key,
      });
    });
    return call;
  }

  async #open(
    from: PlanEvent["from"],
    plan: FullPlan,
    head: Ranged,
    edge: Edge | undefined,
    signal: AbortSignal,
  ): Promise<ObjectAnswer> {
    const { hedging, latencies, ports } = this.#client;
    const { manifest } = plan;
    const delta = ports.savesData() ? 0 : hedging.delta(plan.delta);
    const believed = { plan };
    const cached = edge && edgeSource(edge, believed, latencies);
    const queue = (region: string): FairQueue => this.#client.queue(region);
    const turn = this.#turn;
    const fetch = this.#fetch;
    const resign = (expired: FullPlan): Promise<FullPlan> =>
      this.#client.resigned(this.#request.key, expired, signal, fetch);
    const sources = [
      ...(cached ? [cached] : []),
      ...peerSources(believed, this.#client.config.pops, { fetch, latencies }),
      ...regionSources(plan, { ...ports, fetch, latencies, queue, turn, resign }),
    ];
    this.#trace.planned(from, { ...plan, delta }, spanOf(manifest, head.range).from, sources);
    let answer: ObjectAnswer | undefined;
    const { body, report } = await openRead({
      ...ports,
      manifest,
      sources,
      signal,
      delta,
      hedge: hedging.hedge,
      ...(ports.store && !plan.private ? { share: ports.store.sharing(manifest) } : {}),
      range: head.range,
      onRequest: (record) => this.#trace.request(record),
      onEnd: (ended, error) => {
        edge?.release();
        // A read that was not handed out may still be tried another way.
        if (!answer || answer !== this.#handedOut) return;
        this.#end(head.status, head.range.end - head.range.start, ended, error);
      },
    });
    this.#trace.firstStripe();
    const headers = {
      ...head.headers,
      "server-timing": this.#trace.serverTiming(report),
      "x-agarose-read": this.#trace.kind(report, head.range.end),
    };
    answer = { status: head.status, headers, body };
    return answer;
  }

  #bodiless(from: PlanEvent["from"], plan: FullPlan, { status, headers }: Head): ObjectAnswer {
    this.#trace.planned(from, plan, 0, []);
    return { status, headers: { ...headers, "server-timing": this.#trace.serverTiming() }, body: null };
  }

  #end(status: number, bytes: number, report?: ReadReport, cause?: unknown): void {
    this.#trace.end(status, bytes, report, cause);
    this.#onEnd();
  }
}
