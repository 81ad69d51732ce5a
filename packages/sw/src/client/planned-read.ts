/** A read that has its plan: what it still lacks, the PoP's part of it, and its response. */
import { AgaroseError } from "@agarose/core";
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
import type { ReadResponse } from "../common/http-response.ts";
import { answerContent, type PlannedAnswer } from "./content-answer.ts";
import { decodedBody, newDecoder } from "./content-codings.ts";
import type { ReadPorts } from "./client-read.ts";
import type { Bundle, FullPlan } from "./plans/bundle-request.ts";
import { withSignatures, type FoundPlan, type PlanRequest } from "./plans/plan-source.ts";
import { discard, PopCall } from "./plans/pop-call.ts";
import type { ReadRequest } from "./read-request.ts";
import type { ReadTrace } from "./read-trace.ts";
import { learnDelivery } from "./sources/deliveries.ts";
import { edgeBytes, edgeSource, isSending, type Edge } from "./sources/edge-source.ts";
import type { Slot } from "./sources/fair-queue.ts";
import { peerSources } from "./sources/peer-sources.ts";
import { regionSources } from "./sources/region-sources.ts";
import { serves, spanOf } from "./stripe-span.ts";

/** What all plans of one read have in common. */
export interface ReadParts {
  readonly request: ReadRequest;
  readonly ports: ReadPorts;
  readonly trace: ReadTrace;
  readonly slot: Slot;
  /** What its requests to PoPs have in common. */
  readonly asked: Pick<PlanRequest, "key" | "signal" | "fetch" | "trace">;
  readonly onRequest: (record: RequestRecord) => void;
  /** Called when the body of `response` is over, which is undefined if there has not been one. */
  readonly onEnd: (response: ReadResponse | undefined, bytes: number, report: ReadReport, error?: unknown) => void;
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

/** `PlannedRead` by a plan. Rejects as `answerContent` does. */
export async function plannedRead(found: FoundPlan, parts: ReadParts): Promise<PlannedRead> {
  const answer = await answerContent(found.plan, parts.request, parts.ports.secrets);
  answer.codings?.forEach(newDecoder);
  return new PlannedRead(found, found.plan.private ? unshared(answer) : answer, parts);
}

/** A read by one plan. */
export class PlannedRead {
  /** What of the stored bytes the response needs. Undefined for one without a body. */
  readonly range: ByteRange | undefined;
  readonly #found: FoundPlan;
  readonly #head: PlannedAnswer;
  readonly #parts: ReadParts;
  readonly #rangeHeader: string | undefined;
  /** What a small range lies in. */
  readonly #pieces: readonly Piece[] | undefined;

  constructor(found: FoundPlan, head: PlannedAnswer, parts: ReadParts) {
    const { request, ports } = parts;
    this.#found = found;
    this.#head = head;
    this.#parts = parts;
    this.#rangeHeader = head.codings ? undefined : rangeHeader(request, ports);
    if (request.method !== "GET" || !head.range) return;
    this.range = head.range;
    if (!HAS_STORE || !ports.store) this.#pieces = piecesOf(found.plan.manifest, head.range);
  }

  /** Whether a PoP that is asked for this range sends all of it. */
  get isBrief(): unknown {
    return this.#rangeHeader && this.range!.end - this.range!.start <= BRIEF_BYTES_MAX;
  }

  /** What of a small object or range is not in memory. */
  get missing(): readonly Piece[] | undefined {
    const { memory } = this.#parts.ports;
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
      return { ...bundle, bundle: Promise.resolve(bundle), arrivedMs: 0, release() {} };
    }
    discard(bundle);
    // The PoP has counted a read of which it has nothing.
    return bundle.sendsAll && !bundle.cached.length ? undefined : this.call(discard);
  }

  /** Asks the nearest PoP for the chunks of the plan. `onChanged` gets the bundle of a newer version. */
  call(onChanged: (bundle: Bundle) => void): PopCall | undefined {
    const { asked, ports } = this.#parts;
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
    const { trace, ports, asked, slot, onRequest, onEnd } = this.#parts;
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
      onRequest(record) {
        learnDelivery(record, latencies, edge, bytes);
        onRequest(record);
      },
      onEnd(ended, error) {
        edge?.release();
        onEnd(response, range.end - range.start, ended, error);
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
    const { trace } = this.#parts;
    const { status, headers } = this.#head;
    trace.planned(this.#found, 0, []);
    return { status, headers: { ...headers, "server-timing": trace.serverTiming() }, body: null };
  }
}
