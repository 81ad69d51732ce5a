/** A read that has its plan: what it still lacks, the PoP's part of it, and its response. */
import { AgaroseError } from "@agarose/core";
import type { Secrets } from "@agarose/core/encryption";
import { HAS_MESSAGES, HAS_STORE } from "@agarose/core/features";
import { unshared, type ByteRange } from "@agarose/core/http";
import {
  blockNames,
  BRIEF_BYTES_MAX,
  openRead,
  piecesOf,
  wholeName,
  type BlockMemory,
  type Piece,
  type ReadPolicy,
  type ReadReport,
  type RequestRecord,
} from "@agarose/core/read";
import type { Endpoint } from "../common/config.ts";
import type { ReadResponse } from "../common/http-response.ts";
import type { ClientPorts } from "./client-ports.ts";
import { answerContent, type PlannedAnswer } from "./content-answer.ts";
import { decodedBody, newDecoder } from "./content-codings.ts";
import type { HedgeBudget } from "./hedge-budget.ts";
import type { Batches } from "./plans/batches.ts";
import type { Bundle, FullPlan } from "./plans/bundle-request.ts";
import { withSignatures, type FoundPlan, type PlanPorts, type PlanRequest } from "./plans/plan-source.ts";
import { discard, PopCall } from "./plans/pop-call.ts";
import type { ReadRequest } from "./read-request.ts";
import type { ReadTrace, TracePorts } from "./read-trace.ts";
import { edgeBytes, edgeSource, isSending, learnDelivery, type Edge } from "./sources/edge-source.ts";
import type { FairQueue, Slot } from "./sources/fair-queue.ts";
import { peerSources } from "./sources/peer-sources.ts";
import { regionSources } from "./sources/region-sources.ts";
import { serves, spanOf } from "./stripe-span.ts";

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

/** What all plans of one read have in common. */
export interface Reading {
  readonly request: ReadRequest;
  readonly ports: ReadPorts;
  readonly trace: ReadTrace;
  readonly slot: Slot;
  /** What its requests to PoPs have in common. */
  readonly asked: Pick<PlanRequest, "key" | "signal" | "fetch" | "trace">;
  /** Called when `response` is over, which is undefined if there was none. */
  onEnd(response: ReadResponse | undefined, bytes: number, report: ReadReport, error?: unknown): void;
}

/** Whether memory has a small object whole. */
export function holdsWhole({ manifest }: FullPlan, memory: BlockMemory): boolean {
  return memory.holds([wholeName(manifest)]);
}

/** The `Range` of the request, unless the answer may not follow it. A store keeps whole stripes. */
export function rangeHeader({ headers, method }: ReadRequest, { store }: ReadPorts): string | undefined {
  if ((HAS_STORE && store) || method !== "GET" || headers.get("if-range")) return undefined;
  return headers.get("range") ?? undefined;
}

/** A read by one plan. */
export class PlannedRead {
  /** What of the stored bytes the response needs. Undefined for one without a body. */
  readonly range: ByteRange | undefined;
  readonly #found: FoundPlan;
  readonly #head: PlannedAnswer;
  readonly #reading: Reading;
  readonly #rangeHeader: string | undefined;
  /** What a small range lies in. */
  readonly #pieces: readonly Piece[] | undefined;

  private constructor(found: FoundPlan, head: PlannedAnswer, reading: Reading) {
    const { request, ports } = reading;
    this.#found = found;
    this.#head = head;
    this.#reading = reading;
    this.#rangeHeader = head.codings ? undefined : rangeHeader(request, ports);
    this.range = request.method === "GET" ? head.range : undefined;
    if (this.range && !(HAS_STORE && ports.store)) this.#pieces = piecesOf(found.plan.manifest, this.range);
  }

  /** Rejects as `answerContent` does. */
  static async by(found: FoundPlan, reading: Reading): Promise<PlannedRead> {
    const answer = await answerContent(found.plan, reading.request, reading.ports.secrets);
    answer.codings?.forEach(newDecoder);
    return new PlannedRead(found, found.plan.private ? unshared(answer) : answer, reading);
  }

  /** Whether a PoP that is asked for this range sends all of it. */
  get isBrief(): unknown {
    return this.#rangeHeader && this.range!.end - this.range!.start <= BRIEF_BYTES_MAX;
  }

  /** What of a small object or range is not in memory. */
  get missing(): readonly Piece[] | undefined {
    const { memory } = this.#reading.ports;
    const { plan } = this.#found;
    if (holdsWhole(plan, memory)) return [];
    return this.#pieces?.filter((piece) => !memory.holds(blockNames(plan.manifest, piece)));
  }

  /** The bundle that came with the plan if it has the requested stripes; otherwise a new call for one that has. */
  edge(): Edge | undefined {
    const { bundle, plan } = this.#found;
    if (!bundle) return undefined;
    const { range, span } = bundle;
    if (range ? range === this.#rangeHeader : serves(span, spanOf(plan.manifest, this.range!))) {
      return { ...bundle, bundle: Promise.resolve(bundle), arrivedMs: 0 };
    }
    discard(bundle);
    // The PoP has counted a read of which it has nothing.
    return bundle.sendsAll && !bundle.cached.length ? undefined : this.call(discard);
  }

  /** Asks the nearest PoP for the chunks of the plan. `onChanged` gets the bundle of a newer version. */
  call(onChanged: (bundle: Bundle) => void): PopCall | undefined {
    const { asked, ports } = this.#reading;
    const { key } = asked;
    const { plans, pops } = ports;
    const { purges } = plans;
    const store = HAS_STORE ? ports.store : undefined;
    const known = this.#found.plan;
    const { missing } = this;
    const [pop] = pops.byDistance();
    const { start, end } = this.range!;
    const span = spanOf(known.manifest, this.range!);
    if (!pop || !known.manifest.bytes || missing?.length === 0) return undefined;
    if (store?.holds(known.manifest, span)) return undefined;
    const range = this.#rangeHeader ?? (missing && `bytes=${start}-${end - 1}`);
    return new PopCall({ ...asked, pop, span, range, leaves: true, known }, ports, (received) => {
      const bundle = plans.learnBundle(key, received, purges);
      const { version } = bundle.plan;
      if (version === known.version) return bundle;
      onChanged(bundle);
      throw new AgaroseError("CHUNK_MISSING", HAS_MESSAGES && `${key} now has version ${version}`, { key });
    });
  }

  /** Resolves when the first stripe is ready. */
  async open(edge: Edge | undefined, signal: AbortSignal): Promise<ReadResponse> {
    const { trace, ports, asked, slot } = this.#reading;
    const { configuredPops, hedging, latencies, savesData } = ports;
    const { fetch } = asked;
    const store = HAS_STORE ? ports.store : undefined;
    const { plan } = this.#found;
    const { manifest } = plan;
    const head = this.#head;
    const range = this.range!;
    const pieces = this.#pieces;
    const delta = savesData() ? 0 : hedging.delta(plan.delta);
    const bytes = edgeBytes(plan, pieces);
    const planNow = (): FullPlan => edge?.plan ?? plan;
    const sign = (expired: FullPlan): Promise<FullPlan> => withSignatures(expired, { ...asked, signal }, ports);
    const sources = [
      ...(edge ? [edgeSource(edge, planNow, latencies, bytes, pieces)] : []),
      ...peerSources(planNow, configuredPops, { fetch, latencies }),
      ...regionSources(plan, { ...ports, fetch, slot, sign }),
    ];
    trace.planned({ ...this.#found, plan: { ...plan, delta } }, spanOf(manifest, range).from, sources);
    const requests = new Set<RequestRecord>();
    let response: ReadResponse | undefined;
    const target = { manifest, sources, signal, range };
    const sharing = store && !plan.private && store.sharing(manifest);
    const policy: ReadPolicy = {
      delta,
      hedge: (...late) => !isSending(edge, latencies) && hedging.hedge(...late),
      // A PoP sends all pieces of a brief range with one more request, which the reader of a known plan makes.
      fallback: edge && edge.arrivedMs === undefined && this.isBrief ? "none" : "stripe",
      ...(store && { stripes: true }),
    };
    const { body, report } = await openRead({ ...target, ...sharing }, ports, policy, {
      onRequest: (record) => {
        requests.add(record);
        learnDelivery(record, latencies, edge, bytes);
        trace.request(record);
      },
      onEnd: (ended, error) => {
        edge?.release?.();
        // The reader reports its last cancellations in this turn, after the end of the read.
        ports.clock.after(0, () => hedging.observe(manifest.k, requests));
        this.#reading.onEnd(response, range.end - range.start, ended, error);
      },
    });
    trace.firstStripe();
    const headers = {
      ...head.headers,
      "server-timing": trace.serverTiming(report),
      "x-agarose-read": trace.kind(report, range.end),
    };
    response = { status: head.status, headers, body: decodedBody(head.content?.(body) ?? body, head.codings) };
    return response;
  }

  /** The response to a read that needs no chunk. */
  bodiless(): ReadResponse {
    const { trace } = this.#reading;
    const { status, headers } = this.#head;
    trace.planned(this.#found, 0, []);
    return { status, headers: { ...headers, "server-timing": trace.serverTiming() }, body: null };
  }
}
