/**
 * Hands out the shards of one response to the requests that wait for them: the bundle of a PoP.
 *
 * Frames are read only while a request waits, so a slow consumer holds the sender back instead of filling memory.
 */
import type { Frame } from "../format/bundle.ts";
import { whenAborted } from "../async/when-aborted.ts";
import { toAgaroseError, type AgaroseError } from "../errors.ts";
import type { FrameReader } from "./frame-reader.ts";

/** Frames in the order of their stripes. */
export type Frames = Pick<FrameReader, "next" | "cancel"> & Partial<Pick<FrameReader, "onPart">>;

/** Which shard: the one of chunk `chunk` in stripe `stripe`. */
export interface ShardName {
  readonly stripe: number;
  readonly chunk: number;
}

interface Waiter extends ShardName {
  readonly onPart: ((bytes: number) => void) | undefined;
  readonly arrival: PromiseWithResolvers<Uint8Array>;
}

/** The shards of one response, each to be taken once. */
export class ShardStream {
  progress = 0;
  readonly #frames: Promise<Frames>;
  readonly #missing: (shard: ShardName) => AgaroseError;
  readonly #waiters = new Map<string, Waiter>();
  /** Frames that came before they were asked for. */
  readonly #early = new Map<string, Frame>();
  readonly #released = new Set<number>();
  /** The stripe whose frames are coming. */
  #stripe = 0;
  #pumping = false;
  /** Once no further frame is read: why a shard does not come. */
  #ended: ((shard: ShardName) => AgaroseError) | undefined;

  /**
   * @param frames may still be pending: requests then wait for them.
   * @param missing makes the error for a shard that the stream does not carry.
   */
  constructor(frames: Promise<Frames>, missing: (shard: ShardName) => AgaroseError) {
    this.#frames = frames;
    this.#missing = missing;
    // Nobody may have waited for it when it fails, and Node ends a process for that.
    frames.catch(() => {});
  }

  /**
   * The payload of a shard, once. Rejects with the error of `missing` when the stream is past it, with the error that
   * ended the stream, or with ABORTED.
   *
   * @param onPart called with the number of bytes whenever some have come, of this shard or of one before it.
   */
  async take(shard: ShardName, signal: AbortSignal, onPart?: (bytes: number) => void): Promise<Uint8Array> {
    const name = nameOf(shard);
    const early = this.#early.get(name);
    if (early) {
      this.#early.delete(name);
      if (early.type === "miss") throw this.#missing(early);
      return early.payload;
    }
    if (this.#ended) throw this.#ended(shard);
    if (shard.stripe < this.#stripe || this.#waiters.has(name)) throw this.#missing(shard);
    const arrival = Promise.withResolvers<Uint8Array>();
    this.#waiters.set(name, { ...shard, onPart, arrival });
    const detach = whenAborted(signal, () => this.#settle(name)?.reject(toAgaroseError(signal.reason, "ABORTED")));
    void this.#pump();
    try {
      return await arrival.promise;
    } finally {
      detach();
    }
  }

  /** Rejects the waiting requests whose shard the stream does not carry. */
  rejectMissing(isMissing: (shard: ShardName) => boolean): void {
    for (const [name, waiter] of this.#waiters) {
      if (isMissing(waiter)) this.#settle(name)?.reject(this.#missing(waiter));
    }
  }

  /** Drops what is kept for `stripe`, and what comes for it later. */
  release(stripe: number): void {
    this.#released.add(stripe);
    for (const [name, frame] of this.#early) if (frame.stripe === stripe) this.#early.delete(name);
  }

  /** Rejects all that wait, and all later requests, with `error`; drops what is kept and cancels the response. */
  close(error: AgaroseError): void {
    this.#end(() => error);
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
      frames.onPart = (bytes) => this.#waiters.values().next().value?.onPart?.(bytes);
      while (this.#waiters.size > 0 && !this.#ended) this.#dispatch(await frames.next());
    } catch (cause) {
      const error = toAgaroseError(cause, "SOURCE_FAILED");
      this.#end(() => error);
      // Nothing behind a malformed frame can be read.
      await this.#cancel();
    } finally {
      this.#pumping = false;
    }
  }

  #dispatch(frame: Frame): void {
    this.progress++;
    if (frame.type === "end") return this.#end(this.#missing);
    if (frame.type === "plan" || this.#ended) return;
    // Frames come in stripe order, so no frame of an earlier stripe follows.
    this.#stripe = frame.stripe;
    this.rejectMissing(({ stripe }) => stripe < frame.stripe);
    const arrival = this.#settle(nameOf(frame));
    if (frame.type === "miss") arrival?.reject(this.#missing(frame));
    else arrival?.resolve(frame.payload);
    if (!arrival && !this.#released.has(frame.stripe)) this.#early.set(nameOf(frame), frame);
  }

  /** Takes a request off the list; returns how to settle it. */
  #settle(name: string): Waiter["arrival"] | undefined {
    const waiter = this.#waiters.get(name);
    this.#waiters.delete(name);
    return waiter?.arrival;
  }

  #end(errorFor: (shard: ShardName) => AgaroseError): void {
    this.#ended ??= errorFor;
    for (const waiter of this.#waiters.values()) waiter.arrival.reject(errorFor(waiter));
    this.#waiters.clear();
  }
}

function nameOf({ stripe, chunk }: ShardName): string {
  return `${stripe}:${chunk}`;
}
