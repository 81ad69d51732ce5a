/**
 * One call of a PoP, from asking to letting go, with what it teaches about that PoP.
 */
import { toAgaroseError } from "@agarose/core";
import { isAnswer, requestBundle, type Bundle, type BundleRequest } from "./bundle-request.ts";
import type { Endpoint } from "../../shared/config.ts";
import type { LatencyBook } from "../latency-tracker.ts";
import type { ObjectClient } from "../object-client.ts";
import { popAnswer } from "../read-trace.ts";

/** So long a PoP may take to send a plan, … */
export const POP_PATIENCE_MS = 280;
/** … and longer, up to so long, when it usually takes more than `FAR_MS`. */
const POP_PATIENCE_MS_MAX = 2_000;
const FAR_MS = 250;

/** After how long without a plan the next PoP is asked, and this one has failed once the plan has come from elsewhere. */
export function patienceMs(id: string, latencies: LatencyBook): number {
  const beyondMs = Math.max(0, latencies.estimate(id).meanMs - FAR_MS);
  return Math.min(POP_PATIENCE_MS_MAX, POP_PATIENCE_MS + 2 * beyondMs);
}

export class PopCall {
  readonly pop: Endpoint;
  /** Whoever puts something in its place gets rid of its frames where that rejects. */
  bundle: Promise<Bundle>;
  /** Whether the plan is here. */
  hasArrived = false;
  readonly #client: ObjectClient;
  readonly #id: string;
  readonly #patienceMs: number;
  readonly #startMs: number;
  readonly #abort = new AbortController();

  constructor(client: ObjectClient, request: BundleRequest) {
    const { latencies, ports } = client;
    const { clock } = ports;
    this.pop = request.pop;
    this.#client = client;
    this.#id = popAnswer(request.pop.name);
    this.#startMs = clock.now();
    this.#patienceMs = patienceMs(this.#id, latencies);
    const signal = AbortSignal.any([request.signal, this.#abort.signal]);
    this.bundle = requestBundle({ ...request, signal });
    this.bundle.then(
      () => {
        this.hasArrived = true;
        latencies.observe(this.#id, clock.now() - this.#startMs);
      },
      (error: unknown) => {
        if (!signal.aborted && !isAnswer(toAgaroseError(error))) latencies.failed(this.#id);
      },
    );
  }

  /** Nothing is waited for any more. A plan still under way may come within its patience, to be learned from; later it is a fault. */
  release(): void {
    const { latencies, ports } = this.#client;
    const { clock } = ports;
    const cancelTimer = clock.after(Math.max(0, this.#startMs + this.#patienceMs - clock.now()), () => {
      latencies.failed(this.#id);
      this.#abort.abort();
    });
    this.bundle.then(cancelTimer, cancelTimer);
  }
}

/** Ends a bundle that nobody reads. */
export function discard(bundle: Bundle | undefined): void {
  bundle?.frames.cancel().catch(() => {});
}
