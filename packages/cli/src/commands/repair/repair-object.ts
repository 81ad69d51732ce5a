/**
 * Restores a damaged object from what is left of it.
 */
import {
  encodeManifest,
  isTombstone,
  toAgaroseError,
  type Codec,
  type Manifest,
  type ManifestRecord,
} from "@agarose/core";
import { findGoneChunks } from "../../lib/objects/chunk-heads.ts";
import { commitAgain } from "../../lib/objects/commit/commit.ts";
import { writeRecord } from "../../lib/objects/commit/manifest-write.ts";
import { holds, surveyRegions, type Survey } from "../../lib/objects/commit/region-survey.ts";
import { dequeueRepair } from "../../lib/objects/commit/repair-queue.ts";
import {
  majorityOf,
  writeContextOf,
  type WriteContext,
  type WriteOptions,
} from "../../lib/objects/commit/write-context.ts";
import type { Encoder } from "../../lib/objects/upload/stripe-encoder.ts";
import { uploadChunks } from "../../lib/objects/upload/upload.ts";
import { checkManifests, verifyObject, type ObjectVerdict } from "../../lib/objects/verify-object.ts";
import { ObjectReader } from "./object-reader.ts";

export interface RepairContext extends WriteOptions {
  readonly codec: () => Promise<Codec>;
  readonly encoder: () => Promise<Encoder>;
  /** Whether to find damage by the length of chunks only, which reads k chunks instead of all of them. */
  readonly quick?: boolean;
}

export interface RepairReport {
  /** What was found. */
  readonly before: ObjectVerdict;
  readonly chunksWritten: number;
  readonly manifestsWritten: number;
  /** What is there after the repair; the same as `before` when there was nothing to repair. */
  readonly after: ObjectVerdict;
}

/**
 * Makes the chunks that are missing or wrong from k others, then writes the newest manifest or tombstone to the regions
 * that have an older one or none. It never writes over a newer one.
 *
 * @throws NO_QUORUM, NOT_ENOUGH_CHUNKS when the object cannot be read any more, STORE_FAILED when a chunk cannot be
 *   stored.
 */
export async function repairObject(key: string, options: RepairContext): Promise<RepairReport> {
  const context = writeContextOf(options);
  const before = await verifyObject(key, { ...context, quick: options.quick ?? false });
  const survey = await surveyRegions(key, context);
  const { newest } = survey;
  if (!newest) return { before, chunksWritten: 0, manifestsWritten: 0, after: before };
  const isIncomplete = !isTombstone(newest) && newest.missing !== undefined;
  if (before.sound && !isIncomplete) {
    await dequeueRepair(key, context);
    return { before, chunksWritten: 0, manifestsWritten: 0, after: before };
  }
  // A chunk in a region that is not configured cannot be stored there.
  const chunks = before.damage.filter(({ code }) => code !== "REGION_UNKNOWN").map(({ chunk }) => chunk);
  if (!isTombstone(newest) && chunks.length > 0) await rewriteChunks(newest, chunks, options, context);
  const manifestsWritten = await rewriteManifests(newest, before, context);
  const after = await look(before, newest, chunks, context);
  if (after.sound) await dequeueRepair(key, context);
  return { before, chunksWritten: chunks.length, manifestsWritten, after };
}

/** Encodes chunks from what a read of the object delivers, and stores them under their own names. */
async function rewriteChunks(
  manifest: Manifest,
  chunks: readonly number[],
  { codec, encoder }: RepairContext,
  context: WriteContext,
): Promise<void> {
  const { stores, signal, clock, random } = context;
  const file = new ObjectReader(manifest, { stores, codec, signal, clock, random });
  try {
    await uploadChunks({
      key: manifest.key,
      upload: manifest.upload,
      blockBytes: manifest.blockBytes,
      file,
      layout: manifest,
      stores: manifest.placement.map((region) => stores.find((store) => store.region.name === region)!),
      chunks,
      needed: chunks.length,
      encoder: await encoder(),
      context,
      onBytes: () => {},
    });
  } finally {
    await file.close();
  }
}

/** Brings the regions up to date, on the condition of what they hold now, and returns how many took a manifest. */
async function rewriteManifests(record: ManifestRecord, before: ObjectVerdict, context: WriteContext): Promise<number> {
  const survey = await surveyRegions(record.key, context);
  const { newest, regions } = survey;
  const bytes = encodeManifest(record);
  // Another writer was here meanwhile, and its version is whole.
  if (!newest || !Buffer.from(encodeManifest(newest)).equals(bytes)) return 0;
  const lacking = regions.filter((region) => !holds(region, bytes));
  const isCommitted = regions.length - lacking.length >= majorityOf(regions);
  if (!isCommitted && !before.readable && !isTombstone(record)) return 0;
  if (await isWholeAgain(record, context)) return completeManifest(record as Manifest, survey, context);
  const writes = await writeRecord(record, lacking, context);
  return writes.filter(({ outcome }) => outcome === "written").length;
}

/** Whether a manifest names missing chunks that are there by now, and this command may write another manifest. */
async function isWholeAgain(record: ManifestRecord, context: WriteContext): Promise<boolean> {
  if (isTombstone(record) || !record.missing || (record.signature && !context.sign)) return false;
  return (await findGoneChunks(record, record.missing, context)).length === 0;
}

async function completeManifest(manifest: Manifest, survey: Survey, context: WriteContext): Promise<number> {
  const { missing: _missing, ...whole } = manifest;
  try {
    const { regionsWithout } = await commitAgain(whole, survey, context);
    return context.stores.length - regionsWithout.length;
  } catch (error) {
    if (toAgaroseError(error).code === "REPLACED_MEANWHILE") return 0;
    throw error;
  }
}

/** A second look: at all manifests, and by length at the chunks that were written. */
async function look(
  before: ObjectVerdict,
  record: ManifestRecord,
  written: readonly number[],
  context: WriteContext,
): Promise<ObjectVerdict> {
  const { newest, verdicts } = await checkManifests(record.key, context);
  if (!newest || isTombstone(newest) || isTombstone(record) || newest.upload !== record.upload) {
    return verifyObject(record.key, { ...context, quick: true });
  }
  const gone = new Set(await findGoneChunks(newest, written, context));
  const damage = before.damage.filter(({ chunk, code }) => gone.has(chunk) || code === "REGION_UNKNOWN");
  return {
    ...before,
    version: newest.version,
    sound: damage.length === 0 && verdicts.every(({ state }) => state === "sound"),
    manifests: verdicts,
    chunksSound: before.chunks - damage.length,
    damage,
  };
}
