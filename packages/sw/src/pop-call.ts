/**
 * One call of a PoP, from asking to letting go, with what it teaches about that PoP.
 */
import { toAgaroseError, type FrameReader } from "@agarose/core";
import { isAnswer, requestBundle, type Bundle, type BundleRequest } from "./bundle-request.ts";
import type { ObjectClient } from "./object-client.ts";
import { popAnswer } from "./read-trace.ts";

/** How much longer than its round trip a PoP may take before others are asked, and before it counts as failed. */
export const POP_PATIENCE_MS = 300;

export class PopCall {
  readonly bundle: Promise<Bundle>;
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
    this.#client = client;
    this.#id = popAnswer(request.pop.name);
    this.#startMs = clock.now();
    // One that failed lately gets the chance to have recovered, but not its whole estimate.
    const tripMs = latencies.isAvoided(this.#id) ? 0 : latencies.estimate(this.#id).meanMs;
    this.#patienceMs = tripMs + POP_PATIENCE_MS;
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

  /** Ends the call. A plan still under way may come within its patience, to be learned from; later it is a fault. */
  release(): void {
    const { latencies, ports } = this.#client;
    const { clock } = ports;
    const cancelTimer = clock.after(Math.max(0, this.#startMs + this.#patienceMs - clock.now()), () => {
      latencies.failed(this.#id);
      this.#abort.abort();
    });
    this.bundle
      .then(({ frames }) => discardFrames(frames))
      .catch(() => {})
      .finally(cancelTimer);
  }
}

export function discardFrames(frames: FrameReader): void {
  frames.cancel().catch(() => {});
}
