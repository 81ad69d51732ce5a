/**
 * One chunk on its way to its bucket: a put of known length, fed shard by shard.
 *
 * A plain put rather than a multipart upload: nothing of it exists before it is complete, so an interrupted one leaves
 * nothing to clean up, and memory stays at a few shards instead of a 5 MiB part per chunk. What it cannot do is to
 * start again in the middle; `upload.ts` encodes the chunks that failed once more instead.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import type { Store } from "../store/store.ts";

/** Bytes that wait for a slow region before it holds the others back. */
const QUEUE_BYTES = 1024 * 1024;

const CHUNK_OPTIONS = {
  contentType: "application/octet-stream",
  cacheControl: "public, max-age=31536000, immutable",
} as const;

export class ChunkUpload {
  readonly chunk: number;
  /** Why it failed; it takes shards all the same, so that the other chunks go on. */
  error: AgaroseError | undefined;
  readonly #body = new PassThrough({ highWaterMark: QUEUE_BYTES });
  readonly #settled: Promise<unknown>;

  constructor(chunk: number, store: Store, name: string, bytes: number, signal: AbortSignal) {
    this.chunk = chunk;
    // The body is destroyed when its request fails, which the request itself reports.
    this.#body.on("error", () => {});
    this.#settled = store.put(name, this.#body, { ...CHUNK_OPTIONS, bytes, signal }).catch((error: unknown) => {
      this.error = toAgaroseError(error, "STORE_FAILED");
      this.#body.destroy();
    });
  }

  /** Resolves when there is room for more. */
  async write(shard: Uint8Array): Promise<void> {
    if (this.error || this.#body.destroyed || this.#body.write(shard)) return;
    const waiting = new AbortController();
    await Promise.race([once(this.#body, "drain", { signal: waiting.signal }), this.#settled]);
    waiting.abort();
  }

  /** Ends the body and resolves when the bucket has answered; `error` tells how. */
  async finish(): Promise<void> {
    this.#body.end();
    await this.#settled;
  }

  /** Gives up on a body that is not to be completed. */
  async abandon(): Promise<void> {
    this.#body.destroy();
    await this.#settled;
  }
}

/** A chunk of a single shard: the SDK repeats such a put by itself. */
export async function uploadWholeChunk(
  store: Store,
  name: string,
  shard: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  await store.put(name, shard, { ...CHUNK_OPTIONS, bytes: shard.length, signal });
}
