/**
 * A pass over the file that encodes it and streams every chunk to its region at once, in step.
 *
 * It holds the last stripe back until the whole file has been read and is known to be the same: by the SHA-256 of an
 * earlier pass, or, in the only pass, by what the file system says. A file that changes in between therefore completes
 * no chunk, and every chunk of a version has the bytes that the version names.
 */
import { createHash } from "node:crypto";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import {
  BLOCK_BYTES,
  chunkBytes,
  chunkName,
  concat,
  HASH_BYTES,
  hashBlocks,
  LEAF_LIST,
  stripeCount,
  stripeShape,
  treeRoot,
} from "@agarose/core/format";
import { nodeSha256 } from "../objects/sha256.ts";
import type { Store } from "../buckets/store.ts";
import { askRegions, runTasks, type Patience, type Task } from "../regions/ask-regions.ts";
import { majorityOf, pause, type WriteContext } from "../commit/write-context.ts";
import { keptRegions } from "../layout/object-layout.ts";
import { ChunkUpload, uploadWholeChunk } from "./chunk-upload.ts";
import { hashFile } from "./file-hash.ts";
import type { FileState, SourceReader } from "./file-source.ts";
import { encodeStripe, type Encoder, type StripeLayout } from "./stripe-encoder.ts";

/** What `uploadChunks` uploads, and where to. */
export interface UploadInput {
  readonly key: string;
  /** In the names of the chunks. */
  readonly upload: string;
  /** `blockBytes` of the manifest. Default: that of new objects. */
  readonly blockBytes?: number;
  readonly file: SourceReader;
  readonly layout: StripeLayout;
  /** The SHA-256 of the file, or its state before anyone has read it. */
  readonly expected: string | FileState;
  /** The store of each of the n chunks. */
  readonly stores: readonly Store[];
  /** Which chunks to upload. */
  readonly chunks: readonly number[];
  /** How many of them must be stored. */
  readonly needed: number;
  readonly encoder: Encoder;
  readonly context: Pick<WriteContext, "signal" | "clock" | "random" | "breaker">;
  /** Receives counts of chunk bytes. */
  readonly onBytes: (bytes: number) => void;
  /** Receives counts of file bytes, where no pass before has read them. */
  readonly onHashed?: (bytes: number) => void;
  /**
   * Receives, per stripe and chunk, the hashes of the blocks of the shard, while the last shards are on their way. The
   * file is known to be the expected one then.
   */
  readonly onLeaves?: (leaves: readonly Uint8Array[][]) => void;
}

/** What `uploadChunks` did. */
export interface UploadedChunks {
  /** Per stripe, the hash of the shard of each of the chunks, at the chunk's index. */
  readonly hashes: Uint8Array[][];
  /** SHA-256 of the file, in lower-case hex. */
  readonly sha256: string;
  /** The chunks that could not be stored, ascending. */
  readonly missing: readonly number[];
}

/** Passes over the file. Each later pass encodes only the chunks that failed in the one before. */
const PASSES_MAX = 3;
/** So long may a pass take that only tries again what is not needed. */
const LATE_PASS_MS = 2_000;

/**
 * Uploads the chunks asked for. Chunks beyond those needed are given up when their region hangs.
 *
 * @throws STORE_FAILED or CREDENTIALS_REFUSED when fewer than `needed` can be stored, FILE_UNREADABLE when the file
 *   changed.
 */
export async function uploadChunks(input: UploadInput): Promise<UploadedChunks> {
  const { chunks, needed, stores, context } = input;
  const leaves = Array.from({ length: stripeCount(input.layout) }, () => [] as Uint8Array[]);
  if (leaves.length === 0) return { hashes: [], sha256: createHash("sha256").digest("hex"), missing: [] };
  const missing = new Set(chunks);
  let pending = chunks;
  let ofPass = input;
  for (let pass = 1; ; pass++) {
    const stored = chunks.length - missing.size;
    const { uploads, sha256 } = await new UploadPass(ofPass, pending, leaves, needed - stored).run();
    // A further pass reads the file again, and finds the same leaves.
    const { onLeaves: _found, ...further } = ofPass;
    ofPass = { ...further, expected: sha256 };
    for (const { chunk, error } of uploads) if (!error) missing.delete(chunk);
    const isEnough = chunks.length - missing.size >= needed;
    const failed = uploads.filter(({ error }) => error !== undefined);
    pending = failed
      .filter(({ error }) => error!.code !== "CREDENTIALS_REFUSED")
      .map(({ chunk }) => chunk)
      .filter((chunk) => !isEnough || !context.breaker.isOpen(stores[chunk]!.region.name));
    const isLast = pass === PASSES_MAX || pending.length === 0;
    if (isEnough && isLast)
      return { hashes: await rootsOf(leaves), sha256, missing: [...missing].toSorted((a, b) => a - b) };
    if (isLast || chunks.length - missing.size + pending.length < needed) throw refusal(input, failed);
    await pause(pass, context);
  }
}

function rootsOf(leaves: readonly Uint8Array[][]): Promise<Uint8Array[][]> {
  return Promise.all(leaves.map((trees) => Promise.all(trees.map((tree) => treeRoot(tree, nodeSha256)))));
}

interface FinishedUpload {
  readonly chunk: number;
  readonly error?: AgaroseError | undefined;
}

class UploadPass {
  readonly #input: UploadInput;
  readonly #chunks: readonly number[];
  readonly #leaves: Uint8Array[][];
  /** How long to wait for what: with enough chunks stored before, nothing is worth waiting for. */
  readonly #patience: Patience;
  readonly #fileHash = createHash("sha256");
  #sha256 = "";

  constructor(input: UploadInput, chunks: readonly number[], leaves: Uint8Array[][], needed: number) {
    this.#input = input;
    this.#chunks = chunks;
    this.#leaves = leaves;
    this.#patience = { enough: Math.max(1, needed), limitMs: needed > 0 ? Number.POSITIVE_INFINITY : LATE_PASS_MS };
  }

  /** Returns the uploads, and the SHA-256 of the file in hex. */
  async run(): Promise<{ uploads: readonly FinishedUpload[]; sha256: string }> {
    const uploads = await (this.#leaves.length === 1 ? this.#runWhole() : this.#runStreamed());
    return { uploads, sha256: this.#sha256 };
  }

  /** One stripe: every chunk is one shard. */
  async #runWhole(): Promise<readonly FinishedUpload[]> {
    const { stores, onBytes, onLeaves, context } = this.#input;
    const shards = await this.#encode(0);
    await this.#checkFile();
    onLeaves?.(this.#leaves);
    const tasks = [...shards].map(([chunk, shard]): Task<void> => {
      const store = stores[chunk]!;
      return { store, run: (signal) => uploadWholeChunk(store, this.#name(chunk), shard, signal) };
    });
    const outcomes = await runTasks(tasks, this.#patience, context);
    return [...shards].map(([chunk, shard], index) => {
      const { error } = outcomes[index]!;
      if (!error) onBytes(shard.length);
      return { chunk, error };
    });
  }

  async #runStreamed(): Promise<readonly FinishedUpload[]> {
    const { context, layout, stores, onBytes, onLeaves } = this.#input;
    const bytes = chunkBytes(layout);
    const uploads = this.#chunks.map((chunk) => new ChunkUpload(chunk, stores[chunk]!, this.#name(chunk), bytes));
    try {
      for (let stripe = 0; stripe < this.#leaves.length; stripe++) {
        context.signal.throwIfAborted();
        const shards = await this.#encode(stripe);
        if (stripe === this.#leaves.length - 1) {
          await this.#checkFile();
          onLeaves?.(this.#leaves);
        }
        await this.#inStep(uploads, (upload) => upload.write(shards.get(upload.chunk)!), false);
        for (const shard of shards.values()) onBytes(shard.length);
      }
      await this.#inStep(uploads, (upload) => upload.finish(), true);
      context.signal.throwIfAborted();
      return uploads;
    } catch (error) {
      for (const upload of uploads) upload.giveUp(toAgaroseError(error));
      throw error;
    }
  }

  /** Runs a step of all uploads that have not failed, and gives those up that hang. */
  async #inStep(
    uploads: readonly ChunkUpload[],
    step: (upload: ChunkUpload) => Promise<void>,
    isAnswered: boolean,
  ): Promise<void> {
    const live = uploads.filter(({ error }) => !error);
    const tasks = live.map((upload): Task<void> => ({ store: upload.store, run: () => step(upload) }));
    const outcomes = await runTasks(tasks, { ...this.#patience, isAnswered }, this.#input.context);
    for (const [index, { error }] of outcomes.entries()) if (error) live[index]!.giveUp(error);
  }

  async #encode(stripe: number): Promise<Map<number, Uint8Array>> {
    const { file, layout, encoder, expected, onHashed } = this.#input;
    const shards = await encodeStripe(file, layout, stripe, this.#chunks, encoder, this.#fileHash);
    if (typeof expected !== "string") onHashed?.(stripeShape(layout, stripe).dataBytes);
    await Promise.all(
      [...shards].map(async ([chunk, shard]) => {
        this.#leaves[stripe]![chunk] = await hashBlocks(shard, this.#input.blockBytes ?? BLOCK_BYTES, nodeSha256);
      }),
    );
    return shards;
  }

  /** Throws FILE_UNREADABLE when the file is not the expected one. */
  async #checkFile(): Promise<void> {
    const { key, file, layout, expected, context } = this.#input;
    const sha256 = this.#fileHash.digest("hex");
    this.#sha256 = sha256;
    let [before, now] = [sha256, sha256];
    if (typeof expected === "string") before = expected;
    else if ((await file.state!()).mark !== expected.mark) {
      // A new name or another owner changes the file's times, too. So its bytes decide.
      const found = await hashFile(file, context.signal, () => {});
      now = found.bytes === layout.bytes ? found.sha256 : `${found.sha256} of ${found.bytes} bytes`;
    }
    if (before === now) return;
    throw new AgaroseError(
      "FILE_UNREADABLE",
      `the file of ${JSON.stringify(key)} changed during the put (SHA-256 ${before}, then ${now}): put it again`,
      { key, expected: before, actual: now },
    );
  }

  #name(chunk: number): string {
    return chunkName(this.#input.key, this.#input.upload, chunk);
  }
}

/**
 * Stores the leaf list of an object of which a shard has several blocks, and returns the regions that have it. Readers
 * can do without, so no region is waited for that is slower than a majority, and none has to take it.
 */
export async function uploadLeaves(
  { key, upload, layout, context }: Pick<UploadInput, "key" | "upload" | "layout"> & { readonly context: WriteContext },
  leaves: readonly Uint8Array[][],
): Promise<string[]> {
  const [first] = leaves;
  if (!first || first[0]!.length === HASH_BYTES || layout.bytes === 0) return [];
  const list = concat(leaves.flat());
  const name = chunkName(key, upload, LEAF_LIST);
  const store = (to: Store, signal: AbortSignal): Promise<void> => uploadWholeChunk(to, name, list, signal);
  const kept = new Set(keptRegions(context.config).map((region) => region.name));
  const stores = context.stores.filter(({ region }) => kept.has(region.name));
  const outcomes = await askRegions(stores, store, { enough: majorityOf(stores) }, context);
  return outcomes.flatMap(({ store: { region }, error }) => (error ? [] : [region.name]));
}

function refusal({ key, stores, chunks }: UploadInput, failed: readonly FinishedUpload[]): AgaroseError {
  const first = failed[0]!.error!;
  const regions = [...new Set(failed.map(({ chunk }) => stores[chunk]!.region.name))];
  return new AgaroseError(
    first.code === "CREDENTIALS_REFUSED" ? first.code : "STORE_FAILED",
    `${failed.length} of ${chunks.length} chunks of ${JSON.stringify(key)} could not be stored ` +
      `(regions ${regions.join(", ")}), so readers still see the version before: put it again once they answer, or ` +
      `remove them from the configuration for new objects. First: ${first.message}`,
    { key, chunks: failed.map(({ chunk }) => chunk), regions, first: first.toJSON() },
    first,
  );
}
