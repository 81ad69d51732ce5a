/** One request for a bundle, from asking to letting go, with what it teaches about the PoP. */
import { toAgaroseError } from "@agarose/core";
import { UNWANTED } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import type { BatchPorts, Batches } from "./batches.ts";
import { popId, type LatencyTracker } from "../latency-tracker.ts";
import type { Edge } from "../sources/edge-source.ts";
import { isAnswer, requestBundle, type Bundle, type BundleRequest } from "./bundle-request.ts";

/** A PoP may take this long to send a plan, … */
export const POP_PATIENCE_MS = 280;
/** … and up to this long when it usually takes more than `FAR_MS`. */
export const POP_PATIENCE_MS_MAX = 2_000;
const FAR_MS = 250;

/**
 * How long to wait for a PoP's plan before asking the next PoP. A plan that is later than this counts as a failure once
 * another source has delivered it.
 */
export function popPatienceMs(pop: Endpoint, latencies: LatencyTracker): number {
  const beyondMs = Math.max(0, latencies.estimate(popId(pop.name)).meanMs - FAR_MS);
  return Math.min(POP_PATIENCE_MS_MAX, POP_PATIENCE_MS + 2 * beyondMs);
}

/** Dependencies of `callPop`. */
export type PopCallPorts = Omit<BatchPorts, "fetch">;

/**
 * Asks for a bundle. That of the result rejects with what `requestBundle` rejects with, or with what `onPlan` throws.
 *
 * @param onPlan sees the bundle first and returns what `bundle` resolves to. If it throws, it must discard the bundle.
 */
export function callPop(
  request: BundleRequest & { readonly batches?: Batches | undefined },
  ports: PopCallPorts,
  onPlan: (received: Bundle) => Bundle,
): Edge {
  const { clock, latencies } = ports;
  const { pop, batches } = request;
  const id = popId(pop.name);
  const startMs = clock.now();
  const patienceMs = popPatienceMs(pop, latencies);
  const abort = new AbortController();
  const signal = AbortSignal.any([request.signal, abort.signal]);
  const asked = { ...request, signal };
  const received = batches?.request(asked) ?? requestBundle(asked, ports);
  received.then(
    () => {
      call.arrivedMs = clock.now();
      latencies.observe(id, call.arrivedMs - startMs);
    },
    (error: unknown) => {
      if (!signal.aborted && !isAnswer(toAgaroseError(error))) latencies.failed(id);
    },
  );
  const bundle = received.then((sent) => {
    const learned = onPlan(sent);
    call.plan = learned.plan;
    return learned;
  });
  const call: { -readonly [K in keyof Edge]: Edge[K] } = {
    pop,
    bundle,
    sendsAll: false,
    // A plan may still arrive within the patience and is learned from; after that it counts as a failure.
    release() {
      const cancelTimer = clock.after(Math.max(0, startMs + patienceMs - clock.now()), () => {
        latencies.late(id, startMs);
        abort.abort(UNWANTED);
      });
      bundle.then(cancelTimer, cancelTimer);
    },
  };
  return call;
}

/** Ends a bundle that no read uses. */
export function discard(bundle: Bundle | undefined): void {
  bundle?.frames.cancel().catch(() => {});
}
