/**
 * One request for a bundle, from asking to letting go, with what it teaches about the PoP.
 */
import { toAgaroseError } from "@agarose/core";
import { UNWANTED } from "@agarose/core/sources";
import type { Endpoint } from "../../common/config.ts";
import type { BatchPorts, Batches } from "./batches.ts";
import { popId, type LatencyTracker } from "../latency-tracker.ts";
import { isAnswer, requestBundle, type Bundle, type BundleRequest, type FullPlan } from "./bundle-request.ts";

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

/** What a `PopCall` uses. */
export type PopCallPorts = Omit<BatchPorts, "fetch">;

/** A bundle on its way. It is an `Edge`. */
export class PopCall {
  readonly pop: Endpoint;
  /** Rejects with what `requestBundle` rejects with, or with what `onPlan` throws. */
  readonly bundle: Promise<Bundle>;
  /** The plan that `bundle` resolved to. */
  plan: FullPlan | undefined;
  /** When the plan arrived, on the clock. */
  arrivedMs: number | undefined;
  readonly sendsAll = false;
  readonly #ports: PopCallPorts;
  readonly #id: string;
  readonly #patienceMs: number;
  readonly #startMs: number;
  readonly #abort = new AbortController();

  /**
   * @param onPlan sees the bundle first and returns what `bundle` resolves to. If it throws, it must discard the
   * bundle.
   */
  constructor(
    request: BundleRequest & { readonly batches?: Batches | undefined },
    ports: PopCallPorts,
    onPlan: (received: Bundle) => Bundle,
  ) {
    const { clock, latencies } = ports;
    this.pop = request.pop;
    this.#ports = ports;
    this.#id = popId(request.pop.name);
    this.#startMs = clock.now();
    this.#patienceMs = popPatienceMs(request.pop, latencies);
    const signal = AbortSignal.any([request.signal, this.#abort.signal]);
    const asked = { ...request, signal };
    const received = request.batches?.request(asked) ?? requestBundle(asked, ports);
    received.then(
      () => {
        this.arrivedMs = clock.now();
        latencies.observe(this.#id, this.arrivedMs - this.#startMs);
      },
      (error: unknown) => {
        if (!signal.aborted && !isAnswer(toAgaroseError(error))) latencies.failed(this.#id);
      },
    );
    this.bundle = received.then((bundle) => {
      const learned = onPlan(bundle);
      this.plan = learned.plan;
      return learned;
    });
  }

  /**
   * Stops waiting. A plan may still arrive within the patience and is learned from; after that it counts as a failure.
   */
  release(): void {
    const { clock, latencies } = this.#ports;
    const cancelTimer = clock.after(Math.max(0, this.#startMs + this.#patienceMs - clock.now()), () => {
      latencies.late(this.#id, this.#startMs);
      this.#abort.abort(UNWANTED);
    });
    this.bundle.then(cancelTimer, cancelTimer);
  }
}

/** Ends a bundle that no read uses. */
export function discard(bundle: Bundle | undefined): void {
  bundle?.frames.cancel().catch(() => {});
}
