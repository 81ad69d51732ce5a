/**
 * The leaf lists of an object: every region that its manifest names has a whole copy. Where the shard hashes are in its
 * pages, the object cannot be read without one. Else small ranges read whole shards without it.
 */
import { AgaroseError, toAgaroseError, type Codec } from "@agarose/core";
import {
  checkPage,
  chunkName,
  codeStripe,
  LEAF_LIST,
  LeafList,
  leafListBytes,
  leafShape,
  pageShape,
  stripeCount,
  stripeShape,
  type Manifest,
} from "@agarose/core/format";
import { checkLeaves, StripeHashes } from "@agarose/core/read";
import { currentNames, regionsOf, storeNamed } from "../buckets/region-names.ts";
import { readRecord } from "../buckets/small-record.ts";
import type { Store } from "../buckets/store.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { mapOrdered, allOf } from "../listing/adaptive-pool.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { SilenceLimit } from "../objects/silence.ts";
import { ChunkStream } from "../repair/chunk-stream.ts";
import { ChunkUpload, inStep } from "../upload/chunk-upload.ts";
import type { SourceReader } from "../upload/file-source.ts";

/** The leaf list of one region. */
export interface LeafListVerdict {
  readonly region: string;
  /** The damage: CHUNK_MISSING, CHUNK_WRONG_LENGTH, CHUNK_CORRUPT, or why the region did not answer. */
  readonly code?: string | undefined;
}

const LISTS_AT_A_TIME = 6;

/** Looks at the leaf list in every region that should have it. Rejects only when the caller aborts. */
export async function checkLeafLists(
  manifest: Manifest,
  quick: boolean,
  context: RegionParts,
): Promise<LeafListVerdict[]> {
  const leaves = currentNames(manifest.leaves ?? [], regionsOf(context.stores));
  if (quick) return headLeafLists(manifest, leaves, context);
  return allOf(mapOrdered(leaves, LISTS_AT_A_TIME, (region) => readLeafList(manifest, region, context)));
}

async function headLeafLists(
  manifest: Manifest,
  leaves: readonly string[],
  context: RegionParts,
): Promise<LeafListVerdict[]> {
  const stores = context.stores.filter(({ region }) => leaves.includes(region.name));
  const run = async (store: Store, signal: AbortSignal): Promise<LeafListVerdict> => {
    const region = store.region.name;
    const bytes = await store.head(nameOf(manifest), signal);
    if (bytes === undefined) return { region, code: "CHUNK_MISSING" };
    return { region, code: bytes === leafListBytes(manifest) ? undefined : "CHUNK_WRONG_LENGTH" };
  };
  const tasks = stores.map((store): Task<LeafListVerdict> => ({ store, run: (signal) => run(store, signal) }));
  const outcomes = await runTasks(tasks, { enough: context.breaker.countResponsive(stores) }, context);
  return leaves.map((region) => {
    const outcome = outcomes.find(({ store }) => store.region.name === region);
    if (!outcome) return { region, code: "REGION_UNKNOWN" };
    return outcome.error ? { region, code: outcome.error.code } : outcome.value;
  });
}

async function readLeafList(manifest: Manifest, region: string, context: RegionParts): Promise<LeafListVerdict> {
  const store = storeNamed(context.stores, region);
  if (!store) return { region, code: "REGION_UNKNOWN" };
  if (context.breaker.isOpen(region)) return { region, code: "SOURCE_FAILED" };
  const silence = new SilenceLimit(context.clock, context.signal);
  try {
    const parts = soundParts(manifest, store, { ...context, signal: silence.signal });
    while (!(await silence.limit(parts.next())).done) context.breaker.answered(region);
    return { region };
  } catch (error) {
    context.signal.throwIfAborted();
    if (silence.isOver) context.breaker.open(region);
    return { region, code: toAgaroseError(error, "SOURCE_FAILED").code };
  }
}

/** The leaf list of one region, part by part. It rejects at the first that is not sound. */
async function* soundParts(manifest: Manifest, store: Store, context: RegionParts): AsyncGenerator<Uint8Array> {
  const { pageStripes } = manifest;
  const { signal } = context;
  const hashes = hashesOf(manifest, context);
  const stream = new ChunkStream(manifest, LEAF_LIST, store, 0, signal);
  const stripes = stripeCount(manifest);
  try {
    for (let index = 0; index < stripes; index++) {
      const leaves = await stream.next(leafShape(manifest, index).shardBytes);
      if (leaves.length > 0) await checkLeaves(await hashes.of(index, signal), index, leaves, nodeSha256);
      yield leaves;
      if (!pageStripes || ((index + 1) % pageStripes > 0 && index + 1 < stripes)) continue;
      const page = Math.floor(index / pageStripes);
      const bytes = await stream.next(pageShape({ ...manifest, pageStripes }, page).shardBytes);
      await checkPage(manifest, page, bytes, nodeSha256);
      yield bytes;
    }
    await stream.end();
  } finally {
    stream.close();
  }
}

/**
 * Writes the leaf list again to the regions of `verdicts` that lack it: from a region that has it, or else from the
 * object. Returns the regions that took it.
 */
export async function restoreLeafLists(
  manifest: Manifest,
  verdicts: readonly LeafListVerdict[],
  { file, codec }: { readonly file: SourceReader; readonly codec: () => Promise<Codec> },
  context: RegionParts,
): Promise<string[]> {
  const lacking = new Set(verdicts.filter(isRewritable).map(({ region }) => region));
  const stores = context.stores.filter(({ region }) => lacking.has(region.name));
  if (stores.length === 0) return [];
  for (const { region, code } of verdicts) {
    const store = code === undefined && storeNamed(context.stores, region);
    if (!store) continue;
    try {
      return await storeParts(manifest, soundParts(manifest, store, context), stores, context);
    } catch {
      // It was looked at by its length only, and is not sound: the next one may be.
      context.signal.throwIfAborted();
    }
  }
  return storeParts(manifest, madeParts(manifest, file, await codec()), stores, context);
}

async function storeParts(
  manifest: Manifest,
  parts: AsyncGenerator<Uint8Array>,
  stores: readonly Store[],
  context: RegionParts,
): Promise<string[]> {
  const bytes = leafListBytes(manifest);
  const uploads = stores.map((store) => new ChunkUpload(LEAF_LIST, store, nameOf(manifest), bytes));
  const patience = { enough: uploads.length };
  try {
    for await (const part of parts) {
      await inStep(uploads, (upload) => upload.write(part), { ...patience, isAnswered: false }, context);
    }
    await inStep(uploads, (upload) => upload.finish(), patience, context);
  } catch (error) {
    for (const upload of uploads) upload.giveUp(toAgaroseError(error));
    throw error;
  }
  return uploads.flatMap(({ error, store }) => (error ? [] : [store.region.name]));
}

/** Makes the leaf list from the bytes of the object. Rejects with CHUNK_CORRUPT if they are others than were put. */
async function* madeParts(manifest: Manifest, file: SourceReader, codec: Codec): AsyncGenerator<Uint8Array> {
  const list = new LeafList(manifest, nodeSha256);
  for (let index = 0; index < stripeCount(manifest); index++) {
    const { start, dataBytes, shardBytes } = stripeShape(manifest, index);
    const padded = new Uint8Array(manifest.k * shardBytes);
    await file.read(padded.subarray(0, dataBytes), start);
    const part = await list.add((await codeStripe(manifest, padded, codec, nodeSha256)).leaves);
    const at = list.hashes.length - 1;
    if (list.hashes[at] !== manifest.hashes[at]) throw corrupt(manifest, index);
    yield part;
  }
}

function corrupt({ key }: Manifest, stripe: number): AgaroseError {
  const message = `stripe ${stripe} of ${JSON.stringify(key)} has other hashes than its manifest: run \`agarose verify\``;
  return new AgaroseError("CHUNK_CORRUPT", message, { key, stripe });
}

/** Whether a region that answers has no sound chunk or leaf list. Others cannot be stored there. */
export function isRewritable({ code }: Pick<LeafListVerdict, "code">): boolean {
  return code === "CHUNK_MISSING" || code === "CHUNK_WRONG_LENGTH" || code === "CHUNK_CORRUPT";
}

function nameOf({ key, upload }: Manifest): string {
  return chunkName(key, upload, LEAF_LIST);
}

/** A page comes from the first region, and from the others where that is late, fails, or has a wrong one. */
const FIRST_GOOD = { enough: 1, isGood: () => true };

/**
 * The hashes of `manifest`. They reject with NOT_ENOUGH_CHUNKS where no region has a sound copy of a page, and as the
 * caller aborts.
 */
export function hashesOf(manifest: Manifest, context: RegionParts): StripeHashes {
  return new StripeHashes(manifest, async (page, { chunkOffset, shardBytes }) => {
    const { key, upload, leaves = [] } = manifest;
    const name = chunkName(key, upload, LEAF_LIST);
    const range = `bytes=${chunkOffset}-${chunkOffset + shardBytes - 1}`;
    const regions = currentNames(leaves, regionsOf(context.stores));
    const stores = context.stores.filter(({ region }) => regions.includes(region.name));
    const tasks = stores.map((store): Task<Uint8Array> => ({
      store,
      run: async (signal) => {
        const response = await store.get(name, { range, signal });
        const bytes = await readRecord(response, name, shardBytes);
        if (response.status !== 206 || bytes.length !== shardBytes) {
          const { status } = response;
          const code = status === 404 ? "CHUNK_MISSING" : status === 206 ? "CHUNK_WRONG_LENGTH" : "SOURCE_FAILED";
          throw new AgaroseError(code, `region ${store.region.name} answered ${status} with ${bytes.length} bytes`);
        }
        await checkPage(manifest, page, bytes, nodeSha256);
        return bytes;
      },
    }));
    const outcomes = await runTasks(tasks, FIRST_GOOD, context);
    const found = outcomes.find(({ error }) => !error);
    if (found && !found.error) return found.value;
    const failures = outcomes.map(({ store, error }) => ({ region: store.region.name, code: error!.code }));
    throw new AgaroseError(
      "NOT_ENOUGH_CHUNKS",
      `0 of ${regions.length} regions have page ${page} of the leaf list of ${JSON.stringify(key)}, 1 is needed ` +
        `(${failures.map(({ region, code }) => `${region} ${code}`).join(", ")}): try again once more regions answer`,
      { key, page, needed: 1, received: 0, failures },
    );
  });
}
