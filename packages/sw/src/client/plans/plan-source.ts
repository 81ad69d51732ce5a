/**
 * Where the plan of a read comes from: from memory, from the nearest PoP, from the next one when that fails or is late,
 * from the manifests in the buckets, and last from what is kept offline.
 */
import { AgaroseError } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import { findManifest, isUnusable, staggeredRace, type Attempt, type FailedAttempt } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import type { PlanEvent } from "../../events/read-events.ts";
import { popId, sourceId } from "../latency-tracker.ts";
import { isAnswer, type Bundle, type BundleRequest, type FullPlan } from "./bundle-request.ts";
import type { Batches } from "./batches.ts";
import type { PlanStore } from "./plan-store.ts";
import { callPop, discard, popPatienceMs, POP_PATIENCE_MS_MAX, type PopCallPorts } from "./pop-call.ts";
import type { PopSelector } from "./pop-selector.ts";

/** A PoP may take this much longer for the plan of one of many reads: it looks up a few keys at a time. */
const BATCH_MS = 700;

/** A plan, and the bundle that brought it. */
export interface FoundPlan {
  readonly from: PlanEvent["from"];
  readonly plan: FullPlan;
  /** Undefined unless a PoP has sent the plan just now. */
  readonly bundle?: Bundle | undefined;
}

/** One place that plans come from: a PoP's answer for one read (`edge`) or for many (`batch`), or the `bucket`s. */
export type PlanSource = Attempt<FoundPlan>;

/** The wanted plan. `span` has the stripes whose cached chunks the bundle should contain. */
export interface PlanRequest extends Omit<BundleRequest, "pop" | "known" | "leaves"> {
  /** A plan that may be out of date. The PoP then omits a manifest of the same version, and none may be older. */
  readonly known: FullPlan | undefined;
  /** Set for one of many reads of whole objects, which ask a PoP together. */
  readonly batches?: Batches | undefined;
  /** Whether the request has credentials, so that what a bucket answers is for this read only. */
  readonly isPrivate?: boolean;
}

/** Dependencies of `findPlan`. */
export interface PlanPorts extends PopCallPorts {
  readonly pops: PopSelector;
  readonly plans: PlanStore;
}

/** `known`: a plan in memory, unless another PoP is nearest now. */
export function knownPlan(plan: FullPlan, { pops }: PlanPorts): FoundPlan | undefined {
  const [pop] = pops.byDistance();
  return pop && plan.pop && plan.pop !== pop.name ? undefined : { from: "known", plan };
}

/** `offline`: a plan from before. Throws `error`, for which no other was found, where that speaks of the key itself. */
export function offlinePlan(error: AgaroseError, plan: FullPlan | undefined, { signal }: PlanRequest): FoundPlan {
  if (!plan || isAnswer(error) || signal.aborted) throw error;
  return { from: "kept", plan };
}

/** The PoPs and the buckets, in the order in which they are asked. */
function planSources(request: PlanRequest, ports: PlanPorts): PlanSource[] {
  const kind = request.batches ? batchSource : edgeSource;
  const sources = ports.pops.byDistance().map((pop) => kind(pop, request, ports));
  // Many reads at once must not go from one PoP to the next: each would fetch what it lacks, and be late too.
  return sources.toSpliced(request.batches ? 1 : sources.length, 0, ...bucketSources(request, ports));
}

function edgeSource(pop: Endpoint, request: PlanRequest, ports: PlanPorts): PlanSource {
  const { clock, latencies, plans } = ports;
  const { purges } = plans;
  const id = popId(pop.name);
  let startMs = 0;
  return {
    name: `PoP ${pop.name}`,
    // A PoP that failed lately is asked again, but the read does not wait for it.
    patienceMs: latencies.isAvoided(id) ? 0 : popPatienceMs(pop, latencies),
    async start(signal) {
      startMs = clock.now();
      const bundle = await callPop({ ...request, pop, signal }, ports, (received) =>
        plans.learnBundle(request.key, received, purges),
      ).bundle;
      return { from: "edge", bundle, plan: bundle.plan };
    },
    onLate: () => latencies.late(id, startMs),
  };
}

function batchSource(pop: Endpoint, request: PlanRequest, ports: PlanPorts): PlanSource {
  const source = edgeSource(pop, request, ports);
  const patienceMs = source.patienceMs && source.patienceMs + BATCH_MS;
  // Keys of one page wait for each other, so a PoP that sends some of them is not late with the others.
  return { ...source, patienceMs, moreMs: () => patienceMs - ports.latencies.silentMs(popId(pop.name)) };
}

/** The manifests in the buckets as one source; none where no bucket is known. */
export function bucketSources(request: PlanRequest, ports: PlanPorts): PlanSource[] {
  const { latencies, plans } = ports;
  const { purges } = plans;
  const { key, fetch } = request;
  const regions = plans.regions.map((region) => ({
    ...region,
    latency: latencies.estimate(sourceId("region", region.name)),
  }));
  if (!regions.length) return [];
  const source: PlanSource = {
    name: "buckets",
    // Without a batch no other attempt follows it.
    patienceMs: POP_PATIENCE_MS_MAX,
    async start(signal) {
      const manifest = await findManifest(key, {
        ...ports,
        fetch,
        regions,
        generationMin: request.known?.manifest.generation ?? 0,
        onUnusable: (region) => latencies.failed(sourceId("region", region)),
        signal,
      });
      return { from: "region", plan: plans.learnManifest(key, manifest, purges, request.isPrivate) };
    },
  };
  return [source];
}

/** Rejects with OBJECT_NOT_FOUND, with the manifest's own error, with ABORTED, or with NO_SOURCE. */
export function findPlan(
  request: PlanRequest,
  ports: PlanPorts,
  sources: readonly PlanSource[] = planSources(request, ports),
): Promise<FoundPlan> {
  return staggeredRace(sources, {
    clock: ports.clock,
    signal: request.signal,
    afterFailure: (error) => (isAnswer(error) ? "none" : "next"),
    allFailed: (failures) => noSource(request.key, failures),
    discard: ({ bundle }) => discard(bundle),
  });
}

/** `plan` with valid signatures. Asks a PoP when they have expired. */
export async function withSignatures(
  plan: FullPlan,
  request: Pick<PlanRequest, "key" | "trace" | "signal" | "fetch" | "isPrivate">,
  ports: PlanPorts,
): Promise<FullPlan> {
  if (ports.clock.now() < plan.signedUntilMs!) return plan;
  const { bundle, plan: signed } = await findPlan({ ...request, known: plan, span: { from: 0, to: 0 } }, ports);
  discard(bundle);
  return signed;
}

/** The error of a read without a source. A bucket's verdict on the manifest comes first, as buckets are asked last. */
export function noSource(key: string, failures: readonly FailedAttempt[]): AgaroseError {
  const verdict = failures.find(({ error }) => isUnusable(error));
  if (verdict) return verdict.error;
  return new AgaroseError(
    "NO_SOURCE",
    HAS_MESSAGES &&
      `nothing answers for ${JSON.stringify(key)} (` +
        `${failures.map(({ name, error }) => `${name}: ${error.code}`).join(", ") || "none is configured"}): ` +
        "retry once one of them does",
    { key, failures: failures.map(({ name, error }) => ({ name, code: error.code })) },
  );
}
