/**
 * Restores a damaged object from what is left of it.
 */
import { appendFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Codec, Manifest } from "@agarose/core";
import { getObject } from "../../lib/objects/get-object.ts";
import { writeRecord } from "../../lib/objects/commit/manifest-write.ts";
import { surveyRegions } from "../../lib/objects/commit/region-survey.ts";
import { writeContextOf, type WriteOptions } from "../../lib/objects/commit/write-context.ts";
import type { Encoder } from "../../lib/objects/upload/stripe-encoder.ts";
import { uploadChunks } from "../../lib/objects/upload/upload.ts";
import { fileSource } from "../../lib/objects/upload/file-source.ts";
import { makeTempFolder } from "../../lib/owned-files.ts";
import { checkManifests, verifyObject, type ObjectVerdict } from "../../lib/objects/verify-object.ts";

export interface RepairContext extends WriteOptions {
  readonly codec: () => Promise<Codec>;
  readonly encoder: () => Promise<Encoder>;
}

export interface RepairReport {
  /** What was found. */
  readonly before: ObjectVerdict;
  readonly chunksWritten: number;
  readonly manifestsWritten: number;
  /** What a second look found after the repair; the same as `before` when there was nothing to repair. */
  readonly after: ObjectVerdict;
}

/**
 * Reads the object into a temporary file and checks its SHA-256, encodes and stores the chunks that are missing or wrong,
 * then writes the newest manifest to the regions that lack it.
 *
 * @throws NOT_ENOUGH_CHUNKS when the object cannot be read any more, STORE_FAILED when a chunk cannot be stored.
 */
export async function repairObject(key: string, context: RepairContext): Promise<RepairReport> {
  const { stores, signal } = context;
  const before = await verifyObject(key, stores, signal);
  if (before.sound) return { before, chunksWritten: 0, manifestsWritten: 0, after: before };
  const { manifest } = await checkManifests(key, stores, signal);
  if (!manifest) return { before, chunksWritten: 0, manifestsWritten: 0, after: before };
  const chunks = before.damage.map(({ chunk }) => chunk);
  if (chunks.length > 0) await rewriteChunks(manifest, chunks, context);
  const writing = writeContextOf(context);
  const { regions } = await surveyRegions(key, writing);
  const lacking = before.manifests.filter(({ state }) => state !== "sound").map(({ region }) => region);
  const targets = regions.filter(({ store }) => lacking.includes(store.region.name));
  const writes = await writeRecord(manifest, targets, writing);
  return {
    before,
    chunksWritten: chunks.length,
    manifestsWritten: writes.filter(({ outcome }) => outcome === "written").length,
    after: await verifyObject(key, stores, signal),
  };
}

async function rewriteChunks(manifest: Manifest, chunks: readonly number[], context: RepairContext): Promise<void> {
  const { stores } = context;
  const folder = await makeTempFolder("repair");
  try {
    const path = join(folder, "object");
    await writeFile(path, "", { flag: "wx" });
    await getObject(manifest, undefined, (part) => appendFile(path, part), context);
    const file = await fileSource(path).open();
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
        encoder: await context.encoder(),
        context: writeContextOf(context),
        onBytes: () => {},
      });
    } finally {
      await file.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
