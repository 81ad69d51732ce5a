/**
 * The leaf lists of an object: every region that its manifest names has a whole copy. Readers can do without, so a lost
 * one makes no object unreadable, but small ranges then read whole shards.
 */
import { AgaroseError, toAgaroseError, type Codec } from "@agarose/core";
import {
  chunkName,
  concat,
  hashBlocks,
  LEAF_LIST,
  leafShape,
  stripeCount,
  stripeShape,
  type Manifest,
} from "@agarose/core/format";
import { checkLeaves } from "@agarose/core/read";
import { currentNames, regionsOf } from "../buckets/region-names.ts";
import { readRecord } from "../buckets/small-record.ts";
import type { Store } from "../buckets/store.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { nodeSha256 } from "../objects/sha256.ts";
import { uploadWholeChunk } from "../upload/chunk-upload.ts";
import type { SourceReader } from "../upload/file-source.ts";

/** The leaf list of one region. */
export interface LeafListVerdict {
  readonly region: string;
  /** What is wrong: CHUNK_MISSING, CHUNK_WRONG_LENGTH, CHUNK_CORRUPT, or why the region did not answer. */
  readonly code?: string | undefined;
  /** The list, if it was read and is sound. */
  readonly list?: Uint8Array | undefined;
}

/** Length of a leaf list in bytes. */
export function leafListBytes(manifest: Manifest): number {
  const last = leafShape(manifest, stripeCount(manifest) - 1);
  return last.chunkOffset + last.shardBytes;
}

/** Looks at the leaf list in every region that should have it. Rejects only when the caller aborts. */
export async function checkLeafLists(
  manifest: Manifest,
  quick: boolean,
  context: RegionParts,
): Promise<LeafListVerdict[]> {
  const leaves = currentNames(manifest.leaves ?? [], regionsOf(context.stores));
  const stores = context.stores.filter(({ region }) => leaves.includes(region.name));
  const tasks = stores.map((store): Task<LeafListVerdict> => ({
    store,
    run: (signal) => (quick ? headLeafList(manifest, store, signal) : readLeafList(manifest, store, signal)),
  }));
  const outcomes = await runTasks(tasks, { enough: context.breaker.countResponsive(stores) }, context);
  return leaves.map((region) => {
    const outcome = outcomes.find(({ store }) => store.region.name === region);
    if (!outcome) return { region, code: "REGION_UNKNOWN" };
    return outcome.error ? { region, code: outcome.error.code } : outcome.value;
  });
}

async function headLeafList(manifest: Manifest, store: Store, signal: AbortSignal): Promise<LeafListVerdict> {
  const region = store.region.name;
  const bytes = await store.head(nameOf(manifest), signal);
  if (bytes === undefined) return { region, code: "CHUNK_MISSING" };
  return { region, code: bytes === leafListBytes(manifest) ? undefined : "CHUNK_WRONG_LENGTH" };
}

async function readLeafList(manifest: Manifest, store: Store, signal: AbortSignal): Promise<LeafListVerdict> {
  const region = store.region.name;
  const response = await store.get(nameOf(manifest), { signal });
  const { status } = response;
  if (status !== 200) {
    await response.body?.cancel();
    return { region, code: status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED" };
  }
  const list = await readRecord(response, nameOf(manifest), leafListBytes(manifest)).catch((error: unknown) => {
    if (error instanceof AgaroseError && "max" in error.details) return undefined;
    throw error;
  });
  if (list?.length !== leafListBytes(manifest)) return { region, code: "CHUNK_WRONG_LENGTH" };
  const problem = await problemOf(manifest, list);
  return problem ? { region, code: problem.code } : { region, list };
}

/** Writes the leaf list again to the regions of `verdicts` that lack it. Returns the regions that took it. */
export async function restoreLeafLists(
  manifest: Manifest,
  verdicts: readonly LeafListVerdict[],
  { file, codec }: { readonly file: SourceReader; readonly codec: () => Promise<Codec> },
  context: RegionParts,
): Promise<string[]> {
  const lacking = new Set(verdicts.filter(isRewritable).map(({ region }) => region));
  if (lacking.size === 0) return [];
  const list = verdicts.find((verdict) => verdict.list)?.list ?? (await makeLeafList(manifest, file, await codec()));
  const stores = context.stores.filter(({ region }) => lacking.has(region.name));
  const tasks = stores.map((store): Task<void> => ({
    store,
    run: (signal) => uploadWholeChunk(store, nameOf(manifest), list, signal),
  }));
  const outcomes = await runTasks(tasks, { enough: tasks.length }, context);
  return outcomes.flatMap(({ store, error }) => (error ? [] : [store.region.name]));
}

/** Makes the leaf list from the bytes of the object. Rejects with CHUNK_CORRUPT if they are others than were put. */
async function makeLeafList(manifest: Manifest, file: SourceReader, codec: Codec): Promise<Uint8Array> {
  const { k, m, blockBytes } = manifest;
  const trees: Uint8Array[] = [];
  const parity = Array.from({ length: m }, (_, row) => k + row);
  for (let index = 0; index < stripeCount(manifest); index++) {
    const { start, dataBytes, shardBytes } = stripeShape(manifest, index);
    const padded = new Uint8Array(k * shardBytes);
    await file.read(padded.subarray(0, dataBytes), start);
    const data = Array.from({ length: k }, (_, chunk) => padded.subarray(chunk * shardBytes, (chunk + 1) * shardBytes));
    const shards = [...data, ...(m > 0 ? codec.encode(data, parity) : [])];
    for (const shard of shards) trees.push(await hashBlocks(shard, blockBytes, nodeSha256));
  }
  const list = concat(trees);
  const problem = await problemOf(manifest, list);
  if (problem) throw problem;
  return list;
}

/** What is wrong with a leaf list of the right length. */
async function problemOf(manifest: Manifest, list: Uint8Array): Promise<AgaroseError | undefined> {
  try {
    for (let index = 0; index < stripeCount(manifest); index++) {
      const shape = leafShape(manifest, index);
      const leaves = list.subarray(shape.chunkOffset, shape.chunkOffset + shape.shardBytes);
      await checkLeaves(manifest, index, leaves, nodeSha256);
    }
    return undefined;
  } catch (error) {
    return toAgaroseError(error);
  }
}

/** Whether a region that answers has no sound leaf list. */
function isRewritable({ code }: LeafListVerdict): boolean {
  return code === "CHUNK_MISSING" || code === "CHUNK_WRONG_LENGTH" || code === "CHUNK_CORRUPT";
}

function nameOf({ key, upload }: Manifest): string {
  return chunkName(key, upload, LEAF_LIST);
}
