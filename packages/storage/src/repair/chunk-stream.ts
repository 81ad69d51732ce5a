/**
 * One chunk of an object as its region sends it: one request for all shards from a stripe on, and another one where a
 * connection was cut.
 */
import { AgaroseError } from "@agarose/core";
import { chunkNameOf, stripeShape, type Manifest } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";

/** A chunk that is read shard by shard. */
export class ChunkStream {
  readonly chunk: number;
  readonly store: Store;
  readonly #manifest: Manifest;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #limit: <T>(step: Promise<T>) => Promise<T>;
  /** The bytes of the chunk before those that come next. */
  #offset: number;
  /** Whether bytes have come since the last request. */
  #hasBegun = false;
  #parts: AsyncIterator<Uint8Array> | undefined;
  #rest: Uint8Array = new Uint8Array();

  /** @param limit of the time of each step. Default: none. */
  constructor(
    manifest: Manifest,
    chunk: number,
    store: Store,
    firstStripe: number,
    signal: AbortSignal,
    limit = <T>(step: Promise<T>): Promise<T> => step,
  ) {
    this.chunk = chunk;
    this.store = store;
    this.#manifest = manifest;
    this.#offset = stripeShape(manifest, firstStripe).chunkOffset;
    this.#signal = AbortSignal.any([signal, this.#stop.signal]);
    this.#limit = limit;
  }

  /** The next `bytes` bytes. Rejects with CHUNK_MISSING, CHUNK_WRONG_LENGTH, or why the region did not answer. */
  async next(bytes: number): Promise<Uint8Array> {
    if (bytes === 0) return new Uint8Array();
    const shard = new Uint8Array(bytes);
    let mayAskAgain = true;
    for (let filled = 0; filled < bytes;) {
      if (this.#rest.length === 0) {
        try {
          this.#rest = await this.#part(bytes - filled);
        } catch (error) {
          // Without this, a long chunk would be lost by one cut connection. No shard is believed without its hash.
          if (!mayAskAgain || !this.#hasBegun || this.#signal.aborted) throw error;
          mayAskAgain = false;
          this.#parts = undefined;
          continue;
        }
      }
      const taken = this.#rest.subarray(0, bytes - filled);
      shard.set(taken, filled);
      filled += taken.length;
      this.#rest = this.#rest.subarray(taken.length);
    }
    return shard;
  }

  /** Rejects with CHUNK_WRONG_LENGTH unless all of it has come. */
  async end(): Promise<void> {
    if (this.#rest.length === 0 && this.#parts)
      this.#rest = (await this.#limit(this.#parts.next())).value ?? this.#rest;
    if (this.#rest.length > 0) throw this.#failure("CHUNK_WRONG_LENGTH", "is longer than its length");
  }

  /** Ends the request. */
  close(): void {
    this.#stop.abort();
    // A body that is not read to its end would hold its connection.
    void this.#parts?.return?.().catch(() => {});
  }

  async #part(lacking: number): Promise<Uint8Array> {
    this.#parts ??= await this.#limit(this.#open());
    const { done, value } = await this.#limit(this.#parts.next());
    if (done) throw this.#failure("CHUNK_WRONG_LENGTH", `ends ${lacking} bytes early`);
    this.#hasBegun = true;
    this.#offset += value.length;
    return value;
  }

  async #open(): Promise<AsyncIterator<Uint8Array>> {
    const offset = this.#offset;
    const range = offset > 0 ? { range: `bytes=${offset}-` } : {};
    this.#hasBegun = false;
    const { status, headers, body } = await this.store.get(chunkNameOf(this.#manifest, this.chunk), {
      ...range,
      signal: this.#signal,
    });
    if (status === 404) throw this.#failure("CHUNK_MISSING", "is missing");
    const isWanted = body && status === (offset > 0 ? 206 : 200);
    if (!isWanted) await body?.cancel();
    // Some servers answer a range that they do not have with the whole of it (RFC 9110, section 14.2).
    const isShort = offset > 0 && status === 200 && Number(headers.get("content-length") ?? Infinity) <= offset;
    if (status === 416 || isShort) throw this.#failure("CHUNK_WRONG_LENGTH", `ends before byte ${offset}`);
    if (!isWanted) throw this.#failure("SOURCE_FAILED", `was answered by ${status}`);
    return body[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  }

  #failure(code: "CHUNK_MISSING" | "CHUNK_WRONG_LENGTH" | "SOURCE_FAILED", what: string): AgaroseError {
    const { name: region } = this.store.region;
    const message = `chunk ${this.chunk} of ${JSON.stringify(this.#manifest.key)} in ${region} ${what}`;
    return new AgaroseError(code, message, { chunk: this.chunk, region });
  }
}
