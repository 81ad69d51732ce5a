/**
 * Commits an object whose chunks a page has coded and stored. The page gives the hashes of their blocks, and the leaf
 * list and the manifest are made of these here.
 *
 * The lengths of the chunks are checked, their bytes are not: every reader does that. A page that lies about them makes
 * an object that nobody can read, under the one key that it may write.
 */
import { AgaroseError } from "@agarose/core";
import { chunkBytes, chunkName, HASH_BYTES, stripeCount, stripeShape, type Manifest } from "@agarose/core/format";
import { storeNamed } from "../buckets/region-names.ts";
import type { WriteContext } from "../commit/write-context.ts";
import type { LeafListUpload } from "../leaf-lists/leaf-list-upload.ts";
import { findGoneChunks } from "../objects/chunk-listing.ts";
import { chunksNeeded, commitDraft, type Draft, type PutResult } from "../objects/put-object.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";
import { surveyRegions } from "../regions/region-survey.ts";

/** The page's description of an object that it has coded. */
export interface CodedObject {
  readonly draft: Draft;
  readonly upload: string;
  /** In lower-case hex. */
  readonly sha256: string;
  /** Of each stripe, for each of its n shards, the SHA-256 of each block. */
  readonly leaves: Uint8Array;
}

/** How many bytes `CodedObject.leaves` has. */
export function leavesBytes(draft: Draft): number {
  return shardsLeaves(draft).reduce((sum, bytes) => sum + bytes * (draft.k + draft.m), 0);
}

/**
 * Commits it above generation `begun`.
 *
 * @throws as `commitRecord` does, and STORE_FAILED where too few chunks are there in full, or too few regions take the
 *   leaf list: nothing is written then.
 */
export async function commitUpload(object: CodedObject, begun: number, context: WriteContext): Promise<PutResult> {
  const { draft, upload, sha256 } = object;
  const { key } = draft;
  const survey = await surveyRegions(key, context);
  const needed = chunksNeeded(context.config, draft);
  const bring = async (list: LeafListUpload) => {
    const stored = await storedChunks(draft, upload, context);
    if (stored.length < needed) throw tooFew(key, stored, needed);
    list.begin();
    for (const leaves of stripesOf(object)) await list.add(leaves);
    await list.finish();
    if (!list.isEnough) throw noList(key, list);
    return { sha256, missing: [...draft.placement.keys()].filter((chunk) => !stored.includes(chunk)) };
  };
  const restore = async ({ missing = [], ...manifest }: Manifest): Promise<readonly number[]> => {
    const stored = draft.placement.map((_, chunk) => chunk).filter((chunk) => !missing.includes(chunk));
    const gone = await findGoneChunks(manifest, stored, context);
    if (stored.length - gone.length >= needed) return gone;
    const message =
      `the manifest of ${JSON.stringify(key)} was written, but ${gone.length} of its chunks were removed in the meantime: ` +
      "upload it again";
    throw new AgaroseError("WRITE_UNCERTAIN", message, { key, gone, needed });
  };
  // The generation of its first claim is taken, which `commitRecord` would only find out.
  const above = { ...survey, generation: Math.max(survey.generation, begun) };
  return commitDraft(draft, { upload, survey: above }, { bring, restore }, context);
}

/** The chunks that their regions have in full. A region that does not answer has none. */
export async function storedChunks(draft: Draft, upload: string, context: WriteContext): Promise<number[]> {
  const { key, placement } = draft;
  const bytes = chunkBytes(draft);
  const tasks = placement.flatMap((region, chunk) => {
    const store = storeNamed(context.stores, region);
    const run = async (signal: AbortSignal): Promise<number | undefined> =>
      (await store!.head(chunkName(key, upload, chunk), signal)) === bytes ? chunk : undefined;
    return store ? [{ store, run } satisfies Task<number | undefined>] : [];
  });
  const patience = { enough: chunksNeeded(context.config, draft), tries: true };
  const outcomes = await runTasks(tasks, patience, context);
  return outcomes.flatMap(({ value }) => (value === undefined ? [] : [value]));
}

function shardsLeaves(draft: Draft): number[] {
  const stripes = Array.from({ length: stripeCount(draft) }, (_, index) => stripeShape(draft, index));
  return stripes.map(({ shardBytes }) => Math.ceil(shardBytes / draft.blockBytes) * HASH_BYTES);
}

function* stripesOf({ draft, leaves }: CodedObject): Generator<Uint8Array[]> {
  let at = 0;
  for (const bytes of shardsLeaves(draft)) {
    yield draft.placement.map(() => leaves.subarray(at, (at += bytes)));
  }
}

function tooFew(key: string, stored: readonly number[], needed: number): AgaroseError {
  const message =
    `${stored.length} chunks of ${JSON.stringify(key)} are in their regions in full, ${needed} are needed: upload the ` +
    "others, then commit again";
  return new AgaroseError("STORE_FAILED", message, { key, stored, needed });
}

function noList(key: string, { regions, all }: LeafListUpload): AgaroseError {
  const message = `${regions.length} of ${all.length} regions took the leaf list of ${JSON.stringify(key)}: commit again`;
  return new AgaroseError("STORE_FAILED", message, { key, regions });
}
