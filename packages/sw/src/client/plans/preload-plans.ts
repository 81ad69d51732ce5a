/** Fetches plans before the reads that need them. */
import { inParallel } from "@agarose/core/async";
import { HAS_STORE } from "@agarose/core/features";
import type { ClientPorts } from "../client-ports.ts";
import { isOlder, planFrames, planIn } from "./bundle-request.ts";
import type { PlanPorts } from "./plan-source.ts";

/** Keys that a PoP takes in one request for plans. */
const PLANS_MAX = 100;
const TIMEOUT_MS = 10_000;
/** Keys that are asked for one by one at a time: reads of the page run beside them. */
const PARALLEL_MAX = 8;

/**
 * Fetches the plans of `keys` that are not known, up to 100 in one request to the nearest PoP. Finds what the PoP
 * omits one by one by `find`, and rejects with the last error of these, when all have been tried.
 */
export async function preloadPlans(
  keys: readonly string[],
  ports: PlanPorts & Pick<ClientPorts, "fetch" | "store">,
  find: (key: string) => Promise<unknown>,
): Promise<void> {
  const { pops, plans, fetch, store } = ports;
  const unknown = (): string[] => [...new Set(keys)].filter((key) => !plans.get(key));
  const [pop] = pops.byDistance();
  const asked = pop ? unknown() : [];
  while (asked.length > 0) {
    try {
      const before = plans.purges;
      const batch = asked.splice(0, PLANS_MAX);
      const frames = await planFrames(pop!, batch, { fetch, signal: AbortSignal.timeout(TIMEOUT_MS) });
      for (let frame = await frames.next(); frame.type === "plan"; frame = await frames.next()) {
        const key = batch[frame.stripe]!;
        const plan = await planIn(frame, { key, pop: pop! }, ports);
        // The store outlives the client.
        let known = plans.latest(key);
        if (HAS_STORE) known ??= await store?.plan(key);
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
