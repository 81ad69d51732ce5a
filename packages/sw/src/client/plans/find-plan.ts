/**
 * Finds out what to read: from the nearest PoP, from the next one when that fails or is late, and last from the
 * manifests in the buckets.
 */
import { AgaroseError, type Clock, type FetchPort } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import { findManifest, isUnusable, staggeredRace, type Attempt, type FailedAttempt } from "@agarose/core/sources";
import { popId, sourceId, type LatencyTracker } from "../latency-tracker.ts";
import type { StripeSpan } from "../stripe-span.ts";
import { isAnswer, type Bundle, type FullPlan, type ManifestChecks } from "./bundle-request.ts";
import type { Batches } from "./batches.ts";
import type { PlanStore } from "./plan-store.ts";
import { discard, PopCall, popPatienceMs, POP_PATIENCE_MS_MAX } from "./pop-call.ts";
import type { PopSelector } from "./pop-selector.ts";

/** A PoP may take this much longer for the plan of one of many reads: it looks up a few keys at a time. */
const BATCH_MS = 700;

/** A plan, and the bundle that brought it. */
export interface FoundPlan {
  readonly plan: FullPlan;
  /** Undefined when the plan came from a bucket. */
  readonly bundle?: Bundle | undefined;
}

/** What to look for. */
export interface PlanRequest {
  readonly key: string;
  /** A plan that may be out of date. The PoP then leaves out a manifest of the same version, and none may be older. */
  readonly known: FullPlan | undefined;
  /** The stripes whose cached chunks the bundle is to bring. */
  readonly span: StripeSpan;
  /** See `BundleRequest`. */
  readonly range?: string | undefined;
  /** Set for one of many reads of whole objects, which ask a PoP together. */
  readonly batches?: Batches | undefined;
  /** Whether the request has credentials, so that what a bucket answers is for this read alone. */
  readonly isPrivate?: boolean;
  /** Ask no PoP: what they know is out of date. */
  readonly bucketsOnly?: boolean;
  /** See `BundleRequest`. */
  readonly trace: string;
  readonly signal: AbortSignal;
  readonly fetch: FetchPort;
}

/** What `findPlan` uses. */
export interface PlanPorts extends ManifestChecks {
  readonly pops: PopSelector;
  readonly plans: PlanStore;
  readonly latencies: LatencyTracker;
  readonly clock: Clock;
}

/** Rejects with OBJECT_NOT_FOUND, with the manifest's own error, with ABORTED, or with NO_SOURCE. */
export function findPlan(request: PlanRequest, ports: PlanPorts): Promise<FoundPlan> {
  const { clock, latencies, plans } = ports;
  const { purges } = plans;
  const { key, signal, bucketsOnly, batches, fetch } = request;
  const pops = bucketsOnly ? [] : ports.pops.byDistance();
  const attempts: Attempt<FoundPlan>[] = pops.map((pop) => {
    const id = popId(pop.name);
    // A PoP that failed lately is asked again, but the read does not wait for it.
    const patienceMs = latencies.isAvoided(id) ? 0 : popPatienceMs(pop, latencies) + (batches ? BATCH_MS : 0);
    let startMs = 0;
    return {
      name: `PoP ${pop.name}`,
      patienceMs,
      // Keys of one page wait for each other, so a PoP that sends some of them is not late with the others.
      moreMs: batches && (() => patienceMs - latencies.silentMs(id)),
      async start(own) {
        startMs = clock.now();
        const call = new PopCall({ ...request, pop, signal: own }, ports, (received) =>
          plans.learnBundle(key, received, purges),
        );
        const bundle = await call.bundle;
        return { bundle, plan: bundle.plan };
      },
      onLate: () => latencies.late(id, startMs),
    };
  });
  const regions = plans.regions.map((region) => ({
    ...region,
    latency: latencies.estimate(sourceId("region", region.name)),
  }));
  if (regions.length > 0) {
    // Many reads at once must not go from one PoP to the next: each would fetch what it lacks, and be late too.
    attempts.splice(batches ? 1 : attempts.length, 0, {
      name: "buckets",
      // Without a batch no other attempt follows it.
      patienceMs: POP_PATIENCE_MS_MAX,
      async start(own) {
        const manifest = await findManifest(key, {
          ...ports,
          fetch,
          regions,
          generationMin: request.known?.manifest.generation ?? 0,
          onUnusable: (region) => latencies.failed(sourceId("region", region)),
          signal: own,
        });
        return { plan: plans.learnManifest(key, manifest, purges, request.isPrivate) };
      },
    });
  }
  return staggeredRace(attempts, {
    clock,
    signal,
    afterFailure: (error) => (isAnswer(error) ? "none" : "next"),
    allFailed: (failures) => noSource(key, failures),
    discard: ({ bundle }) => discard(bundle),
  });
}

/** `plan` with valid signatures. Asks a PoP when they have expired. */
export async function withSignatures(
  plan: FullPlan,
  request: Pick<PlanRequest, "key" | "trace" | "signal" | "fetch">,
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
