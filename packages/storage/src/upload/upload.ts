/**
 * A pass over the file that encodes it and streams every chunk to its region at once, in step.
 *
 * It holds the last stripe back until the whole file has been read and is known to be the same: by the SHA-256 of an
 * earlier pass, or, in the only pass, by what the file system says. A file that changes in between therefore completes
 * no chunk, and every chunk of a version has the bytes that the version names.
 */
import { createHash, type Hash } from "node:crypto";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { chunkBytes, chunkName, hashBlocks, stripeCount, stripeShape, type Code } from "@agarose/core/format";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import { nodeSha256 } from "../objects/sha256.ts";
import type { Store } from "../buckets/store.ts";
import { runTasks, type Patience, type Task } from "../regions/ask-regions.ts";
import { pause, type WriteContext } from "../commit/write-context.ts";
import type { LeafListUpload } from "../leaf-lists/leaf-list-upload.ts";
import { ChunkUpload, inStep, uploadWholeChunk } from "./chunk-upload.ts";
import { hashFile, type FileState, type SourceReader } from "./file-source.ts";

/** The chunks of `uploadChunks`, and their destinations. */
export interface UploadInput {
  readonly key: string;
  /** In the names of the chunks. */
  readonly upload: string;
  readonly file: SourceReader;
  readonly layout: StripeLayout & { readonly blockBytes: number };
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
  /** The leaf list to make and to store beside the chunks. Default: none, because it is there. */
  readonly list?: LeafListUpload;
}

/** The outcome of `uploadChunks`. */
export interface UploadedChunks {
  /** SHA-256 of the file, in lower-case hex. */
  readonly sha256: string;
  /** The chunks that could not be stored, ascending. */
  readonly missing: readonly number[];
}

/** Passes over the file. Each later pass encodes only the chunks that failed in the one before. */
const PASSES_MAX = 3;
/** So long may a pass take that only retries what is not needed. */
const LATE_PASS_MS = 2_000;

/**
 * Uploads the chunks asked for. Chunks beyond those needed are given up when their region hangs.
 *
 * @throws STORE_FAILED or CREDENTIALS_REFUSED when fewer than `needed` can be stored, FILE_UNREADABLE when the file
 *   changed.
 */
export async function uploadChunks(input: UploadInput): Promise<UploadedChunks> {
  const { chunks, needed, stores, context } = input;
  const stripes = stripeCount(input.layout);
  if (stripes === 0) return { sha256: createHash("sha256").digest("hex"), missing: [] };
  const missing = new Set(chunks);
  let pending = chunks;
  let ofPass = input;
  for (let pass = 1; ; pass++) {
    const stored = chunks.length - missing.size;
    const { uploads, sha256 } = await uploadPass(ofPass, pending, needed - stored);
    for (const { chunk, error } of uploads) if (!error) missing.delete(chunk);
    const hasList = ofPass.list?.isEnough ?? true;
    const { list: _stored, ...further } = ofPass;
    ofPass = { ...(hasList ? further : ofPass), expected: sha256 };
    const isEnough = chunks.length - missing.size >= needed;
    const failed = uploads.filter(({ error }) => error !== undefined);
    pending = failed
      .filter(({ error }) => error!.code !== "CREDENTIALS_REFUSED")
      .map(({ chunk }) => chunk)
      .filter((chunk) => !isEnough || !context.breaker.isOpen(stores[chunk]!.region.name));
    const isLast = pass === PASSES_MAX || (pending.length === 0 && hasList);
    if (isEnough && isLast && hasList) return { sha256, missing: [...missing].toSorted((a, b) => a - b) };
    if (isLast && isEnough) throw listRefusal(input);
    if (isLast || chunks.length - missing.size + pending.length < needed) throw refusal(input, failed);
    await pause(pass, context);
  }
}

interface FinishedUpload {
  readonly chunk: number;
  readonly error?: AgaroseError | undefined;
}

/**
 * One pass over the file, which is to store `needed` of `chunks` or more. Returns the uploads, and the SHA-256 of the
 * file in hex.
 */
async function uploadPass(
  input: UploadInput,
  chunks: readonly number[],
  needed: number,
): Promise<{ uploads: readonly FinishedUpload[]; sha256: string }> {
  const { file, layout, expected, stores, encoder, context, onBytes, onHashed, list } = input;
  const stripes = stripeCount(layout);
  // With enough chunks stored before, nothing is worth waiting for.
  const limitMs = needed > 0 ? Number.POSITIVE_INFINITY : LATE_PASS_MS;
  const patience: Patience = { enough: Math.max(1, needed), limitMs };
  const hash = createHash("sha256");
  let sha256 = "";
  const nameOf = (chunk: number): string => chunkName(input.key, input.upload, chunk);

  /** The shards to upload, and where a leaf list is made, the hashes of the blocks of all n. */
  const encode = async (stripe: number): Promise<{ shards: Map<number, Uint8Array>; leaves: Uint8Array[] }> => {
    const wanted = list ? [...stores.keys()] : chunks;
    const shards = await encodeStripe(file, layout, stripe, wanted, encoder, hash);
    if (typeof expected !== "string") onHashed?.(stripeShape(layout, stripe).dataBytes);
    if (stripe === stripes - 1) sha256 = await checkedHash(input, hash);
    if (!list) return { shards, leaves: [] };
    const leaves = await Promise.all(
      wanted.map((chunk) => hashBlocks(shards.get(chunk)!, layout.blockBytes, nodeSha256)),
    );
    return { shards: new Map(chunks.map((chunk) => [chunk, shards.get(chunk)!])), leaves };
  };

  /** One stripe: every chunk is one shard. */
  const uploadWhole = async (): Promise<readonly FinishedUpload[]> => {
    const { shards, leaves } = await encode(0);
    const tasks = [...shards].map(([chunk, shard]): Task<void> => {
      const store = stores[chunk]!;
      return { store, run: (signal) => uploadWholeChunk(store, nameOf(chunk), shard, signal) };
    });
    const added = list?.add(leaves).then(() => list.finish());
    const [outcomes] = await Promise.all([runTasks(tasks, { ...patience, tries: true }, context), added]);
    return [...shards].map(([chunk, shard], index) => {
      const { error } = outcomes[index]!;
      if (!error) onBytes(shard.length);
      return { chunk, error };
    });
  };

  const uploadStreamed = async (): Promise<readonly FinishedUpload[]> => {
    const bytes = chunkBytes(layout);
    const uploads = chunks.map((chunk) => new ChunkUpload(chunk, stores[chunk]!, nameOf(chunk), bytes));
    try {
      const step = { ...patience, isAnswered: false };
      for (let stripe = 0; stripe < stripes; stripe++) {
        context.signal.throwIfAborted();
        const { shards, leaves } = await encode(stripe);
        await Promise.all([
          inStep(uploads, (upload) => upload.write(shards.get(upload.chunk)!), step, context),
          list?.add(leaves),
        ]);
        for (const shard of shards.values()) onBytes(shard.length);
      }
      await Promise.all([inStep(uploads, (upload) => upload.finish(), patience, context), list?.finish()]);
      context.signal.throwIfAborted();
      return uploads;
    } catch (error) {
      for (const upload of uploads) upload.giveUp(toAgaroseError(error));
      throw error;
    }
  };

  list?.begin();
  try {
    const uploads = await (stripes === 1 ? uploadWhole() : uploadStreamed());
    return { uploads, sha256 };
  } catch (error) {
    list?.giveUp(toAgaroseError(error));
    throw error;
  }
}

/** The SHA-256 of a file that was read to its end. Throws FILE_UNREADABLE when it is not the expected one. */
async function checkedHash({ key, file, layout, expected, context }: UploadInput, hash: Hash): Promise<string> {
  const sha256 = hash.digest("hex");
  let [before, now] = [sha256, sha256];
  if (typeof expected === "string") before = expected;
  else if ((await file.state!()).mark !== expected.mark) {
    // A new name or another owner changes the file's times, too. So its bytes decide.
    const found = await hashFile(file, context.signal, () => {});
    now = found.bytes === layout.bytes ? found.sha256 : `${found.sha256} of ${found.bytes} bytes`;
  }
  if (before === now) return sha256;
  throw new AgaroseError(
    "FILE_UNREADABLE",
    `the file of ${JSON.stringify(key)} changed during the put (SHA-256 ${before}, then ${now}): put it again`,
    { key, expected: before, actual: now },
  );
}

/** The copies of a leaf list that an object cannot do without are too few. */
function listRefusal({ key, list }: UploadInput): AgaroseError {
  const regions = list?.regions ?? [];
  return new AgaroseError(
    "STORE_FAILED",
    `${regions.length} regions took the leaf list of ${JSON.stringify(key)} (${regions.join(", ") || "none"}), more ` +
      "must have it, so readers still see the version before: put it again once they answer",
    { key, regions },
  );
}

function refusal({ key, stores, chunks }: UploadInput, failed: readonly FinishedUpload[]): AgaroseError {
  const first = failed[0]!.error!;
  const regions = [...new Set(failed.map(({ chunk }) => stores[chunk]!.region.name))];
  return new AgaroseError(
    first.code === "CREDENTIALS_REFUSED" ? first.code : "STORE_FAILED",
    `${failed.length} of ${chunks.length} chunks of ${JSON.stringify(key)} could not be stored ` +
      `(regions ${regions.join(", ")}), so readers still see the version before: put it again once they answer, or ` +
      `remove them from the configuration for new objects. First error: ${first.message}`,
    { key, chunks: failed.map(({ chunk }) => chunk), regions, first: first.toJSON() },
    first,
  );
}

/** The code of an object and its length. */
interface StripeLayout extends Code {
  readonly bytes: number;
  readonly stripeBytes: number;
}

/** Encodes in threads, so that the event loop continues to upload. */
export type Encoder = Pick<EncoderPool, "encode">;

/** Encodes the shards `wanted` of stripe `index`, and adds the bytes read to `hash` in the order of the file. */
async function encodeStripe(
  file: SourceReader,
  layout: StripeLayout,
  index: number,
  wanted: readonly number[],
  encoder: Encoder,
  hash: Hash,
): Promise<Map<number, Uint8Array>> {
  const { k } = layout;
  const { start, dataBytes, shardBytes } = stripeShape(layout, index);
  // Zeroed, because the padding after the data is part of the code.
  const data = new Uint8Array(k * shardBytes);
  const bytesRead = await file.read(data.subarray(0, dataBytes), start);
  hash.update(data.subarray(0, bytesRead));
  const rows = wanted.filter((chunk) => chunk >= k);
  const encoded = await encoder.encode(data, k, rows);
  return new Map(
    wanted.map((chunk) => [chunk, chunk < k ? encoded.data[chunk]! : encoded.parity[rows.indexOf(chunk)]!]),
  );
}
