/**
 * Finds out what to read: from the nearest PoP, the next one when that fails or is late, and at last from the manifests
 * in the buckets.
 */
import {
  AgaroseError,
  HAS_MESSAGES,
  findManifest,
  staggeredRace,
  isUnusable,
  type Attempt,
  type FailedAttempt,
  type FetchPort,
} from "@agarose/core";
import { isAnswer, type Bundle, type FullPlan } from "./bundle-request.ts";
import type { ObjectClient } from "../object-client.ts";
import { discard, patienceMs, PopCall } from "./pop-call.ts";
import { popAnswer } from "../read-trace.ts";
import type { StripeSpan } from "../stripe-span.ts";

export interface Located {
  readonly plan: FullPlan;
  /** Where the plan came from; undefined when that was a bucket. */
  readonly bundle?: Bundle | undefined;
}

export interface LocateRequest {
  readonly key: string;
  /** A plan that may be out of date; spares sending its manifest again. */
  readonly known: FullPlan | undefined;
  readonly span: StripeSpan;
  /** Ask no PoP: what they know is out of date. */
  readonly bucketsOnly?: boolean;
  readonly signal: AbortSignal;
  readonly fetch: FetchPort;
}

/** Rejects with OBJECT_NOT_FOUND, with the manifest's own error, with ABORTED, or with NO_SOURCE. */
export function locate(client: ObjectClient, request: LocateRequest): Promise<Located> {
  const { latencies, ports, regions } = client;
  const { key, signal, bucketsOnly, fetch } = request;
  const pops = bucketsOnly ? [] : client.popsByDistance();
  const attempts: Attempt<Located>[] = pops.map((pop) => ({
    name: `PoP ${pop.name}`,
    // One that failed lately is asked again, but nobody waits for it.
    patienceMs: latencies.isAvoided(popAnswer(pop.name)) ? 0 : patienceMs(popAnswer(pop.name), latencies),
    async start(own) {
      const bundle = await new PopCall(client, { ...request, pop, signal: own }).bundle;
      return { bundle, plan: client.learn(key, bundle.plan) };
    },
    onLate: () => latencies.failed(popAnswer(pop.name)),
  }));
  if (regions.length > 0) {
    attempts.push({
      name: "buckets",
      // The last one in turn: nobody is asked after it.
      patienceMs: 0,
      async start(own) {
        const manifest = await findManifest(key, { ...ports, fetch, regions, signal: own });
        return { plan: client.planFromBuckets(key, manifest) };
      },
    });
  }
  return staggeredRace(attempts, {
    clock: ports.clock,
    signal,
    afterFailure: (error) => (isAnswer(error) ? "none" : "next"),
    allFailed: (failures) => noSource(key, failures),
    discard: ({ bundle }) => discard(bundle),
  });
}

/** What the buckets say weighs more than what a PoP says of them: they are asked last and know best. */
function noSource(key: string, failures: readonly FailedAttempt[]): AgaroseError {
  const verdict = failures.find(({ error }) => isUnusable(error));
  if (verdict) return verdict.error;
  return new AgaroseError(
    "NO_SOURCE",
    HAS_MESSAGES &&
      `no PoP and no bucket has a plan for ${JSON.stringify(key)} (` +
        `${failures.map(({ name, error }) => `${name}: ${error.code}`).join(", ") || "none is configured"}): ` +
        "retry once one of them answers",
    { key, failures: failures.map(({ name, error }) => ({ name, code: error.code })) },
  );
}
