/**
 * Chunks that come as frames, one after another, as a source: those that a PoP has cached, fed by a bundle that may still be
 * under way, or the shards of one GET at a region (`region-source.ts`).
 *
 * Frames are read only while somebody waits for one, so a slow consumer holds the sender back instead of filling memory.
 */
import type { Frame } from "../format/bundle.ts";
import { AgaroseError, HAS_MESSAGES, toAgaroseError } from "../errors.ts";
import type { LatencyEstimate } from "../latency.ts";
import type { FrameReader } from "./frame-reader.ts";
import type { ChunkRequest, ChunkSource } from "./source.ts";

/** Frames in the order of their stripes. */
export type Frames = Pick<FrameReader, "next" | "cancel">;

export interface BundleSourceOptions {
  /** Name of the PoP. */
  readonly id: string;
  readonly latency: () => LatencyEstimate;
  /** Chunks that the PoP has said to hold: as believed at first, and as its plan says once `frames` is there. */
  readonly cached: () => readonly number[];
  /** The frames behind the plan. May still be pending: buckets are then asked at the same moment as the PoP. */
  readonly frames: Promise<Frames>;
}

export class BundleSource implements ChunkSource {
  readonly id: string;
  readonly kind = "edge";
  readonly updated: Promise<void>;
  progress = 0;
  readonly #latency: () => LatencyEstimate;
  readonly #cached: () => readonly number[];
  readonly #frames: Promise<Frames>;
  readonly #waiters = new Map<string, Waiter>();
  /** Frames that came before they were asked for. */
  readonly #early = new Map<string, Frame>();
  readonly #released = new Set<number>();
  /** The stripe whose frames are coming. */
  #stripe = 0;
  #pumping = false;
  #ended: AgaroseError | undefined;

  constructor(options: BundleSourceOptions) {
    this.id = options.id;
    this.#latency = options.latency;
    this.#cached = options.cached;
    this.#frames = options.frames;
    this.updated = this.#frames.then(
      () => this.#rejectMissing(({ chunk }) => !this.#cached().includes(chunk)),
      // A failed bundle is told to whoever waits for its chunks; a read that needs none of them does not care.
      () => {},
    );
  }

  get latency(): LatencyEstimate {
    return this.#latency();
  }

  /** How many chunks are waited for. */
  get awaited(): number {
    return this.#waiters.size;
  }

  has(_stripe: number, chunk: number): boolean {
    return this.#cached().includes(chunk);
  }

  async fetch({ stripe, chunk, signal }: ChunkRequest): Promise<Uint8Array> {
    const name = `${stripe.index}:${chunk}`;
    const early = this.#early.get(name);
    if (early) {
      this.#early.delete(name);
      return payload(early);
    }
    if (this.#ended) throw this.#ended;
    if (stripe.index < this.#stripe) throw missing({ stripe: stripe.index, chunk });
    const arrival = Promise.withResolvers<Uint8Array>();
    this.#waiters.set(name, { stripe: stripe.index, chunk, arrival });
    const onAbort = (): void => this.#settle(name)?.reject(toAgaroseError(signal.reason, "ABORTED"));
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    void this.#pump();
    try {
      return await arrival.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  release(stripe: number): void {
    this.#released.add(stripe);
    for (const name of this.#early.keys()) if (name.startsWith(`${stripe}:`)) this.#early.delete(name);
  }

  /** Stops the bundle when no more of it is needed. */
  close(): void {
    this.#end(new AgaroseError("ABORTED", HAS_MESSAGES && "the bundle was closed"));
    this.#early.clear();
    void this.#cancel();
  }

  async #cancel(): Promise<void> {
    await this.#frames.then((frames) => frames.cancel()).catch(() => {});
  }

  async #pump(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    try {
      const frames = await this.#frames;
      while (this.#waiters.size > 0 && !this.#ended) this.#dispatch(await frames.next());
    } catch (error) {
      this.#end(toAgaroseError(error, "SOURCE_FAILED"));
      // What follows a malformed frame is of no use to anybody.
      await this.#cancel();
    } finally {
      this.#pumping = false;
    }
  }

  #dispatch(frame: Frame): void {
    this.progress++;
    if (frame.type === "end") {
      this.#end(new AgaroseError("CHUNK_MISSING", HAS_MESSAGES && `${this.id} does not hold the chunk any more`));
      return;
    }
    if (frame.type === "plan" || this.#ended) return;
    // Frames come in stripe order: what is still awaited of an earlier stripe does not come any more.
    this.#stripe = frame.stripe;
    this.#rejectMissing(({ stripe }) => stripe < frame.stripe);
    const name = `${frame.stripe}:${frame.chunk}`;
    const arrival = this.#settle(name);
    if (!arrival) {
      if (!this.#released.has(frame.stripe)) this.#early.set(name, frame);
    } else if (frame.type === "chunk") {
      arrival.resolve(frame.payload);
    } else {
      arrival.reject(missing(frame));
    }
  }

  #settle(name: string): Waiter["arrival"] | undefined {
    const waiter = this.#waiters.get(name);
    this.#waiters.delete(name);
    return waiter?.arrival;
  }

  #rejectMissing(isMissing: (waiter: Waiter) => boolean): void {
    for (const [name, waiter] of this.#waiters) {
      if (isMissing(waiter)) this.#settle(name)?.reject(missing(waiter));
    }
  }

  #end(error: AgaroseError): void {
    this.#ended ??= error;
    for (const { arrival } of this.#waiters.values()) arrival.reject(error);
    this.#waiters.clear();
  }
}

/** Somebody who waits for a chunk. */
interface Waiter {
  readonly stripe: number;
  readonly chunk: number;
  readonly arrival: PromiseWithResolvers<Uint8Array>;
}

function payload(frame: Frame): Uint8Array {
  if (frame.type === "miss") throw missing(frame);
  return frame.payload;
}

function missing({ stripe, chunk }: { readonly stripe: number; readonly chunk: number }): AgaroseError {
  return new AgaroseError(
    "CHUNK_MISSING",
    HAS_MESSAGES && `chunk ${chunk} of stripe ${stripe} is not cached any more`,
    {
      stripe,
      chunk,
    },
  );
}
