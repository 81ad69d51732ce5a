/** Fetches plans before the reads that need them. */
import type { FetchPort } from "@agarose/core";
import { inParallel } from "@agarose/core/async";
import { HAS_STORE } from "@agarose/core/features";
import type { ObjectStore } from "../object-store.ts";
import { isOlder, PLANS_MAX, requestPlans, type ManifestChecks } from "./bundle-request.ts";
import type { PlanStore } from "./plan-store.ts";
import type { PopSelector } from "./pop-selector.ts";

/** Keys that are asked for one by one at a time: reads of the page run beside them. */
const PARALLEL_MAX = 8;

/** What `preloadPlans` uses. */
export interface PreloadPorts {
  readonly pops: PopSelector;
  readonly plans: PlanStore;
  readonly store?: Pick<ObjectStore, "plan"> | undefined;
  readonly fetch: FetchPort;
  readonly checks: ManifestChecks;
  /** Finds the plan of one key. */
  readonly find: (key: string) => Promise<unknown>;
}

/**
 * Fetches the plans of `keys` that are not known, up to 100 in one request to the nearest PoP. Finds what the PoP
 * leaves out one by one, and rejects with the last error of these, when all have been tried.
 */
export async function preloadPlans(keys: readonly string[], ports: PreloadPorts): Promise<void> {
  const { pops, plans, fetch, find, checks, store } = ports;
  const unknown = (): string[] => [...new Set(keys)].filter((key) => !plans.get(key));
  const [pop] = pops.byDistance();
  const asked = pop ? unknown() : [];
  while (asked.length > 0) {
    try {
      const before = plans.purges;
      const received = requestPlans(pop!, asked.splice(0, PLANS_MAX), fetch, checks);
      for await (const [key, plan] of received) {
        // The store outlives the client.
        const known = plans.latest(key) ?? (HAS_STORE ? await store?.plan(key) : undefined);
        if (!isOlder(plan.manifest, known)) plans.learn(key, plan, before);
      }
    } catch {
      break;
    }
  }
  let failure: unknown;
  await inParallel(PARALLEL_MAX, unknown(), (key) => find(key).catch((error) => (failure = error)));
  if (failure) throw failure;
}
