/**
 * The upload of one chunk: a put of known length, fed shard by shard.
 *
 * It is a plain put rather than a multipart upload, unless the chunk is longer than S3 takes in one put. Nothing exists
 * before it is complete, so an interrupted one leaves nothing to clean up, and memory holds a few shards. It cannot
 * resume in the middle; `upload.ts` encodes the failed chunks once more instead.
 */
import { once } from "node:events";
import { PassThrough } from "node:stream";
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import type { Store } from "../buckets/store.ts";
import { runTasks, type AskContext, type Patience, type Task } from "../regions/ask-regions.ts";

/** Bytes that may wait for a slow region before it slows the others down. */
const QUEUE_BYTES = 1024 * 1024;

/** How every chunk is stored. */
export const CHUNK_OPTIONS = {
  contentType: "application/octet-stream",
  cacheControl: "public, max-age=31536000, immutable",
} as const;

/** A put whose body grows by `write` and ends by `finish` or `giveUp`. */
export class ChunkUpload {
  readonly chunk: number;
  readonly store: Store;
  /** Why it failed. A failed upload still takes shards, so that the other chunks continue. */
  error: AgaroseError | undefined;
  readonly #body = new PassThrough({ highWaterMark: QUEUE_BYTES });
  readonly #settled: Promise<unknown>;
  readonly #stop = new AbortController();

  constructor(chunk: number, store: Store, name: string, bytes: number) {
    this.chunk = chunk;
    this.store = store;
    const { signal } = this.#stop;
    // The body is destroyed when its request fails, which the request itself reports.
    this.#body.on("error", () => {});
    this.#settled = store.put(name, this.#body, { ...CHUNK_OPTIONS, bytes, signal }).catch((error: unknown) => {
      this.error ??= toAgaroseError(error, "STORE_FAILED");
      this.#body.destroy();
    });
  }

  /** Resolves when there is room for more. */
  async write(shard: Uint8Array): Promise<void> {
    if (this.error || this.#body.destroyed || this.#body.write(shard)) return;
    const waiting = new AbortController();
    const drained = once(this.#body, "drain", { signal: waiting.signal }).catch(() => {});
    await Promise.race([drained, this.#settled]);
    waiting.abort();
  }

  /** Ends the body and resolves when the bucket has answered; `error` is then final. */
  async finish(): Promise<void> {
    this.#body.end();
    await this.#settled;
  }

  /** Ends the request without completing the body. `reason` becomes its error. */
  giveUp(reason: AgaroseError): void {
    this.error ??= reason;
    this.#stop.abort();
    this.#body.destroy();
  }
}

/** Runs a step of all uploads that have not failed, and gives those up that hang. */
export async function inStep(
  uploads: readonly ChunkUpload[],
  step: (upload: ChunkUpload) => Promise<void>,
  patience: Patience,
  context: AskContext,
): Promise<void> {
  const live = uploads.filter(({ error }) => !error);
  const tasks = live.map((upload): Task<void> => ({ store: upload.store, run: () => step(upload) }));
  const outcomes = await runTasks(tasks, patience, context);
  for (const [index, { error }] of outcomes.entries()) if (error) live[index]!.giveUp(error);
}

/** Uploads a chunk of a single shard. The SDK retries such a put. */
export async function uploadWholeChunk(
  store: Store,
  name: string,
  shard: Uint8Array,
  signal: AbortSignal,
): Promise<void> {
  await store.put(name, shard, { ...CHUNK_OPTIONS, bytes: shard.length, signal });
}
