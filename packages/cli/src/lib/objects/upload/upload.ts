/**
 * The second pass of a put: encodes the file and streams every chunk to its region at once, in step.
 *
 * It holds the last stripe back until the whole file has been read and has the SHA-256 of the first pass. A file that
 * changes in between therefore completes no chunk, and every chunk of a version has the bytes that the version names.
 */
import { createHash } from "node:crypto";
import { AgaroseError, BLOCK_BYTES, hashShard, chunkBytes, chunkName, stripeCount } from "@agarose/core";
import { nodeSha256 } from "../sha256.ts";
import type { Store } from "../../store/store.ts";
import { ChunkUpload, uploadWholeChunk } from "./chunk-upload.ts";
import type { SourceReader } from "./file-source.ts";
import { encodeStripe, type Encoder, type StripeLayout } from "./stripe-encoder.ts";

/** What `uploadChunks` uploads, and where to. */
export interface UploadInput {
  readonly key: string;
  /** In the names of the chunks. */
  readonly upload: string;
  /** `blockBytes` of the manifest. Default: that of new objects. */
  readonly blockBytes?: number;
  readonly file: SourceReader;
  readonly layout: StripeLayout & { readonly sha256: string };
  /** The store of each of the n chunks. */
  readonly stores: readonly Store[];
  /** Which chunks to upload. */
  readonly chunks: readonly number[];
  readonly encoder: Encoder;
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
}

/** Passes over the file. Each later pass encodes only the chunks that failed in the one before. */
const PASSES_MAX = 3;

/**
 * Uploads the chunks asked for.
 *
 * @returns per stripe, the SHA-256 of the shard of each of these chunks, at the chunk's index.
 * @throws STORE_FAILED or CREDENTIALS_REFUSED when a chunk cannot be stored, FILE_UNREADABLE when the file changed.
 */
export async function uploadChunks(input: UploadInput): Promise<Uint8Array[][]> {
  let pending = input.chunks;
  const hashes = Array.from({ length: stripeCount(input.layout) }, () => [] as Uint8Array[]);
  if (hashes.length === 0) return [];
  for (let pass = 1; ; pass++) {
    const uploads = await new UploadPass(input, pending, hashes).run();
    const failed = uploads.filter(({ error }) => error !== undefined);
    if (failed.length === 0) return hashes;
    const hopeless = failed.find(({ error }) => error?.code === "CREDENTIALS_REFUSED");
    if (hopeless || pass === PASSES_MAX) throw refusal(input, failed);
    pending = failed.map(({ chunk }) => chunk);
  }
}

interface FinishedUpload {
  readonly chunk: number;
  readonly error: AgaroseError | undefined;
}

class UploadPass {
  readonly #input: UploadInput;
  readonly #chunks: readonly number[];
  readonly #hashes: Uint8Array[][];
  readonly #fileHash = createHash("sha256");

  constructor(input: UploadInput, chunks: readonly number[], hashes: Uint8Array[][]) {
    this.#input = input;
    this.#chunks = chunks;
    this.#hashes = hashes;
  }

  run(): Promise<readonly FinishedUpload[]> {
    return this.#hashes.length === 1 ? this.#runWhole() : this.#runStreamed();
  }

  /** One stripe: every chunk is one shard. */
  async #runWhole(): Promise<readonly FinishedUpload[]> {
    const { signal, stores, onBytes } = this.#input;
    const shards = await this.#encode(0);
    this.#checkFile();
    return Promise.all(
      [...shards].map(async ([chunk, shard]) => {
        try {
          await uploadWholeChunk(stores[chunk]!, this.#name(chunk), shard, signal);
          onBytes(shard.length);
          return { chunk, error: undefined };
        } catch (error) {
          signal.throwIfAborted();
          return { chunk, error: error as AgaroseError };
        }
      }),
    );
  }

  async #runStreamed(): Promise<readonly FinishedUpload[]> {
    const { signal, layout, stores, onBytes } = this.#input;
    const abort = new AbortController();
    const either = AbortSignal.any([signal, abort.signal]);
    const bytes = chunkBytes(layout);
    const uploads = this.#chunks.map(
      (chunk) => new ChunkUpload(chunk, stores[chunk]!, this.#name(chunk), bytes, either),
    );
    try {
      for (let stripe = 0; stripe < this.#hashes.length; stripe++) {
        signal.throwIfAborted();
        const shards = await this.#encode(stripe);
        if (stripe === this.#hashes.length - 1) this.#checkFile();
        await Promise.all(uploads.map((upload) => upload.write(shards.get(upload.chunk)!)));
        for (const shard of shards.values()) onBytes(shard.length);
      }
      await Promise.all(uploads.map((upload) => upload.finish()));
      signal.throwIfAborted();
      return uploads;
    } catch (error) {
      abort.abort();
      await Promise.all(uploads.map((upload) => upload.abandon()));
      throw error;
    }
  }

  async #encode(stripe: number): Promise<Map<number, Uint8Array>> {
    const { file, layout, encoder } = this.#input;
    const shards = await encodeStripe(file, layout, stripe, this.#chunks, encoder, this.#fileHash);
    await Promise.all(
      [...shards].map(async ([chunk, shard]) => {
        this.#hashes[stripe]![chunk] = await hashShard(shard, this.#input.blockBytes ?? BLOCK_BYTES, nodeSha256);
      }),
    );
    return shards;
  }

  #checkFile(): void {
    const { key, layout } = this.#input;
    const actual = this.#fileHash.digest("hex");
    if (actual === layout.sha256) return;
    throw new AgaroseError(
      "FILE_UNREADABLE",
      `the file of ${JSON.stringify(key)} changed during the put (SHA-256 ${layout.sha256}, then ${actual}): put it again`,
      { key, expected: layout.sha256, actual },
    );
  }

  #name(chunk: number): string {
    return chunkName(this.#input.key, this.#input.upload, chunk);
  }
}

function refusal({ key, stores, chunks }: UploadInput, failed: readonly FinishedUpload[]): AgaroseError {
  const first = failed[0]!.error!;
  const regions = [...new Set(failed.map(({ chunk }) => stores[chunk]!.region.name))];
  return new AgaroseError(
    first.code,
    `${failed.length} of ${chunks.length} chunks of ${JSON.stringify(key)} could not be stored ` +
      `(regions ${regions.join(", ")}), so readers still see the version before: put it again once they answer, or ` +
      `remove them from the configuration for new objects. First: ${first.message}`,
    { key, chunks: failed.map(({ chunk }) => chunk), regions, first: first.toJSON() },
    first,
  );
}
