/** A read that has its plan: what it still lacks, the PoP's part of it, and its response. */
import { AgaroseError } from "@agarose/core";
import type { Secrets } from "@agarose/core/encryption";
import { HAS_MESSAGES, HAS_STORE } from "@agarose/core/features";
import { stripeShape } from "@agarose/core/format";
import { unshared } from "@agarose/core/http";
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
} from "@agarose/core/read";
import type { Endpoint } from "../common/config.ts";
import type { ReadResponse } from "../common/http-response.ts";
import type { ClientPorts } from "./client-ports.ts";
import { answerContent } from "./content-answer.ts";
import { decodedBody, newDecoder } from "./content-codings.ts";
import type { HedgeBudget } from "./hedge-budget.ts";
import { FAILED, sourceId } from "./latency-tracker.ts";
import type { Batches } from "./plans/batches.ts";
import type { Bundle, FullPlan } from "./plans/bundle-request.ts";
import { withSignatures, type FoundPlan, type PlanPorts, type PlanRequest } from "./plans/plan-source.ts";
import { callPop, discard } from "./plans/pop-call.ts";
import type { ReadRequest } from "./read-request.ts";
import type { ReadTrace, TracePorts } from "./read-trace.ts";
import { edgeSource, isSending, learnDelivery, type Edge } from "./sources/edge-source.ts";
import type { FairQueue, Slot } from "./sources/fair-queue.ts";
import { peerSources } from "./sources/peer-sources.ts";
import { regionSources } from "./sources/region-sources.ts";
import { spanOf } from "./stripe-span.ts";

/** Dependencies that a read gets from its client. */
export interface ReadPorts extends ClientPorts, PlanPorts, TracePorts {
  /** Peers and credentials are for these PoPs only. */
  readonly configuredPops: readonly Endpoint[];
  readonly hedging: HedgeBudget;
  readonly batches: Batches;
  /** Blocks that small reads have verified. */
  readonly memory: BlockMemory;
  /** Decrypt objects. */
  readonly secrets?: Secrets | undefined;
  /** The queue of a region's requests. */
  readonly queue: (region: string) => FairQueue;
}

/** Options of all plans of one read. */
export interface Reading {
  readonly request: ReadRequest;
  readonly ports: ReadPorts;
  readonly trace: ReadTrace;
  readonly slot: Slot;
  /** Options of all its requests for plans. */
  readonly asked: Pick<PlanRequest, "key" | "signal" | "fetch" | "trace" | "isPrivate">;
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

/** The read by a plan. Rejects as `answerContent` does. */
export async function plannedRead(found: FoundPlan, reading: Reading) {
  const { request, ports, trace, slot, asked } = reading;
  const { hedging, latencies, memory, plans, pops } = ports;
  const { plan, bundle } = found;
  const { manifest } = plan;
  const store = HAS_STORE ? ports.store : undefined;
  const answer = await answerContent(plan, request, ports);
  answer.codings?.forEach(newDecoder);
  const { status, headers, content, codings, range } = plan.private ? unshared(answer) : answer;
  const asksRange = codings ? undefined : rangeHeader(request, ports);
  const hasBody = request.method === "GET" && range;
  const { start, end } = range ?? { start: 0, end: 0 };
  const span = spanOf(manifest, { start, end });
  // The stripes of a small range, because a store keeps whole stripes.
  const pieces = store || !range ? undefined : piecesOf(manifest, range);
  // A PoP that is asked for it sends all of it.
  const isBrief = asksRange && end - start <= BRIEF_BYTES_MAX;

  /** The pieces of a small object or range that memory lacks. */
  const missing = (): readonly Piece[] | undefined =>
    holdsWhole(plan, memory) ? [] : pieces?.filter((piece) => !memory.holds(blockNames(manifest, piece)));

  /** Whether it is left to the PoP: k regions would have to replace a failed one that holds what is missing. */
  const isLeft = (): unknown =>
    isBrief &&
    pops.byDistance()[0] &&
    missing()?.some(({ chunk }) => latencies.estimate(sourceId("region", manifest.placement[chunk]!)) === FAILED);

  /** Asks the nearest PoP for the chunks of the plan. `onChanged` gets the bundle of a newer version. */
  const call = (onChanged: (bundle: Bundle) => void): Edge | undefined => {
    const { purges } = plans;
    const { key } = asked;
    const lacks = missing();
    const [pop] = pops.byDistance();
    if (!hasBody || !pop || !manifest.bytes || lacks?.length === 0 || store?.holds(manifest, span)) return undefined;
    const wanted = { span, range: asksRange ?? (lacks && `bytes=${start}-${end - 1}`), leaves: true, known: plan };
    return callPop({ ...asked, ...wanted, pop }, ports, (received) => {
      const learned = plans.learnBundle(key, received, purges);
      if (learned.plan.version === plan.version) return learned;
      onChanged(learned);
      throw new AgaroseError("CHUNK_MISSING", HAS_MESSAGES && `${key} now has version ${learned.plan.version}`, {
        key,
      });
    });
  };

  /** The bundle that came with the plan if it has the requested stripes; otherwise a call for one that has. */
  const edgeBehind = (): Edge | undefined => {
    if (!bundle) return undefined;
    // It must have the stripes that are wanted, and none before them.
    if (
      hasBody &&
      (bundle.range ? bundle.range === asksRange : bundle.span.from === span.from && bundle.span.to >= span.to)
    ) {
      return { ...bundle, bundle: Promise.resolve(bundle), arrivedMs: 0 };
    }
    discard(bundle);
    // The PoP has counted a read of which it has nothing.
    return bundle.sendsAll && !bundle.cached.length ? undefined : call(discard);
  };

  /** Resolves when the first stripe is ready, or at once if the response has no body. */
  const open = async (signal = asked.signal, edge = edgeBehind()): Promise<ReadResponse> => {
    if (!hasBody) {
      trace.planned(found, 0, []);
      return { status, headers: { ...headers, ...trace.headers() }, body: null };
    }
    const delta = ports.savesData() ? 0 : hedging.delta(plan.delta);
    const bytes = pieces ? 0 : plan.cached.length * stripeShape(manifest, 0).shardBytes;
    const planNow = (): FullPlan => edge?.plan ?? plan;
    const sign = (expired: FullPlan): Promise<FullPlan> => withSignatures(expired, { ...asked, signal }, ports);
    const own = { ...ports, fetch: asked.fetch, slot, sign };
    const sources = [
      ...(edge ? [edgeSource(edge, planNow, latencies, bytes, pieces)] : []),
      ...peerSources(planNow, ports.configuredPops, own),
      ...regionSources(plan, own),
    ];
    trace.planned({ ...found, plan: { ...plan, delta } }, span.from, sources);
    let response: ReadResponse | undefined;
    const policy: ReadPolicy = {
      delta,
      hedge: (...late) => !isSending(edge, latencies) && hedging.hedge(...late),
      // A PoP sends all pieces of a brief range with one more request, which the reader of a known plan makes.
      fallback: edge && edge.arrivedMs === undefined && isBrief ? "none" : "stripe",
      ...(store && { stripes: true }),
    };
    const { body, report } = await openRead(
      {
        manifest,
        sources,
        signal,
        ...(status === 206 && { range: { start, end } }),
        ...(store && !plan.private && store.sharing(manifest)),
      },
      ports,
      policy,
      {
        onRequest: (record) => {
          learnDelivery(record, latencies, edge, bytes);
          trace.request(record);
        },
        onEnd: (ended, error) => {
          edge?.release?.();
          // The reader reports its last cancellations in this turn, after the end of the read.
          ports.clock.after(0, () => hedging.observe(manifest.k, ended.requests));
          reading.onEnd(response, end - start, ended, error);
        },
      },
    );
    const all = { ...headers, ...trace.headers(report, end) };
    return (response = { status, headers: all, body: decodedBody(content?.(body) ?? body, codings) });
  };

  return { isLeft, call, open };
}
