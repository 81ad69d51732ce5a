/**
 * Batches: reads of whole objects that begin within milliseconds of each other ask their PoP once, for their plans and
 * for the bodies of the small ones (docs/reference/format.md, "Bundle").
 */
import type { Clock, FetchPort } from "@agarose/core";
import { HAS_MESSAGES } from "@agarose/core/features";
import type { Frame } from "@agarose/core/format";
import { UNWANTED } from "@agarose/core/sources";
import { planFrames, planIn, requestBundle, sentBehind, unusable } from "./bundle-request.ts";
import type { Bundle, BundleRequest, ManifestChecks } from "./bundle-request.ts";
import { popId, type LatencyTracker } from "../latency-tracker.ts";

/** A read that begins within this time of another is one of many. One that is alone waits for none. */
const TOGETHER_MS = 20;
/** How long a batch waits for more reads. */
const GATHER_MS = 4;
/**
 * A browser has six connections to one host, so six batches run side by side. In longer ones, objects that were asked
 * for later would come before many others. Nine of the longest keys make a URL of 9 kB: Cloudflare takes 16 kB.
 */
export const BATCH_KEYS_MAX = 9;
/** A PoP sends less in one batch. */
const BATCH_BYTES_MAX = 4 * 1024 * 1024;

/** Dependencies of `Batches`. */
export interface BatchPorts extends ManifestChecks {
  readonly clock: Clock;
  readonly latencies: LatencyTracker;
  /** The network, without credentials. */
  readonly fetch: FetchPort;
}

/** The batches of one client. */
export class Batches {
  readonly #ports: BatchPorts;
  #readMs = Number.NEGATIVE_INFINITY;
  /** The batch that waits for more reads. */
  #next: Batch | undefined;

  constructor(ports: BatchPorts) {
    this.#ports = ports;
  }

  /** Records that the read of a whole object begins, and returns whether it is one of many. */
  joins(): boolean {
    const nowMs = this.#ports.clock.now();
    const sinceMs = nowMs - this.#readMs;
    this.#readMs = nowMs;
    return sinceMs <= TOGETHER_MS;
  }

  /** `requestBundle` of a whole object, together with others. */
  async request(request: BundleRequest): Promise<Bundle> {
    let batch = this.#next;
    if (batch?.pop !== request.pop || batch.parts.has(request.key)) {
      const own = (batch = this.#next = new Batch(request.pop));
      this.#ports.clock.after(GATHER_MS, () => this.#send(own));
    }
    const part = new Part(request, batch);
    batch.parts.set(request.key, part);
    if (batch.parts.size === BATCH_KEYS_MAX) this.#send(batch);
    // A PoP omits keys that it has no plan of. Its answer about a single key counts.
    return (await part.bundle) ?? requestBundle(request, this.#ports);
  }

  #send(batch: Batch): void {
    if (this.#next === batch) this.#next = undefined;
    void batch.send(this.#ports);
  }
}

/** One request, of keys in the order of `parts`. */
class Batch {
  readonly parts = new Map<string, Part>();
  readonly pop: BundleRequest["pop"];
  readonly #abort = new AbortController();
  #isSent = false;

  constructor(pop: BundleRequest["pop"]) {
    this.pop = pop;
  }

  /** Ends the request when no read waits for it. Reads may join until it is sent. */
  left(): void {
    if (this.#isSent && [...this.parts.values()].every(({ isOver }) => isOver)) this.#abort.abort(UNWANTED);
  }

  async send(ports: BatchPorts): Promise<void> {
    if (this.#isSent) return;
    this.#isSent = true;
    this.left();
    const parts = [...this.parts.values()];
    const { signal } = this.#abort;
    try {
      signal.throwIfAborted();
      const frames = await planFrames(this.pop, [...this.parts.keys()], { ...ports, signal }, "&bodies=1");
      let bytes = 0;
      for (let frame = await frames.next(); frame.type !== "end"; frame = await frames.next()) {
        bytes += frame.payload.length;
        ports.latencies.heard(popId(this.pop.name));
        const part = parts[frame.stripe];
        if (!part || bytes > BATCH_BYTES_MAX) {
          throw unusable(this.pop, HAS_MESSAGES && `has a frame of key ${frame.stripe}, and ${bytes} bytes until then`);
        }
        part.take(frame, ports);
      }
      for (const part of parts) part.end();
    } catch (error) {
      this.#abort.abort(UNWANTED);
      for (const part of parts) part.end(error);
    }
  }
}

/** One key of a batch. */
class Part {
  /** Undefined if the batch has no plan of the key. */
  readonly bundle: Promise<Bundle | undefined>;
  /** Whether nothing more of it comes, or is wanted. */
  isOver = false;
  readonly #arrival = Promise.withResolvers<Bundle | undefined>();
  readonly #request: BundleRequest;
  readonly #frames: ReadableStream<Frame>;
  #controller!: ReadableStreamDefaultController<Frame>;
  /** Frames still to come behind the plan. Undefined before the plan. */
  #left: number | undefined;

  constructor(request: BundleRequest, batch: Batch) {
    const { signal } = request;
    this.bundle = this.#arrival.promise;
    this.#request = request;
    const leave = (): void => {
      this.end(signal.reason ?? true);
      batch.left();
    };
    this.#frames = new ReadableStream<Frame>({ start: (own) => void (this.#controller = own), cancel: leave });
    signal.addEventListener("abort", leave, { once: true });
  }

  /** Takes in a frame of this key. */
  take(frame: Frame, checks: ManifestChecks): void {
    if (this.isOver) return;
    if (this.#left === undefined) {
      this.#left = frame.chunk;
      this.#arrival.resolve(this.#bundle(frame, checks));
    } else {
      this.#left--;
      this.#controller.enqueue({ ...frame, stripe: 0 });
    }
    if (this.#left > 0) return;
    this.#controller.enqueue({ ...frame, type: "end" });
    this.isOver = true;
  }

  async #bundle(frame: Frame, checks: ManifestChecks): Promise<Bundle> {
    const { pop, range } = this.#request;
    const plan = await planIn(frame, this.#request, checks);
    const reader = this.#frames.getReader();
    const next = async (): Promise<Frame> => (await reader.read()).value!;
    const frames = { next, cancel: () => reader.cancel() };
    // A plan without a body is a bundle of no stripe.
    const span = { from: 0, to: frame.chunk - 1 };
    return { pop, ...sentBehind(frame, plan, true), range, span, frames };
  }

  /** Nothing more comes. `error` says why, if that is not the end of the batch. */
  end(error?: unknown): void {
    if (this.isOver) return;
    this.isOver = true;
    if (error === undefined && this.#left === undefined) return this.#arrival.resolve(undefined);
    const reason = error ?? unusable(this.#request.pop, HAS_MESSAGES && `ends ${this.#left} chunks too early`);
    this.#arrival.reject(reason);
    this.#controller.error(reason);
  }
}
