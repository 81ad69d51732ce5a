/**
 * The engines under test: what the commands call once they have read their arguments.
 */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { expireObjects } from "../../src/maintenance/expire-objects.ts";
import type { collectGarbage } from "../../src/maintenance/gc/collect-garbage.ts";
import type { renameRegions } from "../../src/maintenance/rename.ts";
import type { findRecodable, recodeVersion } from "../../src/maintenance/recode-object.ts";
import type { storeExtra } from "../../src/maintenance/scrub/store-extra.ts";
import type { scrubObjects } from "../../src/maintenance/scrub/scrub-objects.ts";
import type { claimBatch } from "../../src/commit/batches.ts";
import type { batchKeys } from "../../src/upload/batches-of-keys.ts";
import type { announce, Fence, untilFenced } from "../../src/commit/fence.ts";
import type { repairObject } from "../../src/repair/repair-object.ts";
import type { applyKeys } from "../../src/maintenance/apply-keys.ts";
import type { writeContextOf } from "../../src/commit/write-context.ts";
import type { getObject } from "../../src/objects/get-object.ts";
import type { handleUploads } from "../../src/page-uploads/handle-uploads.ts";
import type { readManifest } from "../../src/objects/manifests.ts";
import type { putObject } from "../../src/objects/put-object.ts";
import type { findRestorable, restoreVersion } from "../../src/history/restore-object.ts";
import type { removeObject } from "../../src/objects/remove-object.ts";
import type { verifyObject } from "../../src/objects/verify-object.ts";

export interface Engines {
  readonly putObject: typeof putObject;
  readonly batchKeys: typeof batchKeys;
  readonly claimBatch: typeof claimBatch;
  readonly removeObject: typeof removeObject;
  readonly expireObjects: typeof expireObjects;
  readonly findRestorable: typeof findRestorable;
  readonly restoreVersion: typeof restoreVersion;
  readonly repairObject: typeof repairObject;
  readonly scrubObjects: typeof scrubObjects;
  readonly storeExtra: typeof storeExtra;
  readonly findRecodable: typeof findRecodable;
  readonly recodeVersion: typeof recodeVersion;
  readonly renameRegions: typeof renameRegions;
  readonly applyKeys: typeof applyKeys;
  readonly collectGarbage: typeof collectGarbage;
  readonly readManifest: typeof readManifest;
  readonly getObject: typeof getObject;
  readonly verifyObject: typeof verifyObject;
  readonly Fence: typeof Fence;
  readonly announce: typeof announce;
  readonly untilFenced: typeof untilFenced;
  readonly writeContextOf: typeof writeContextOf;
  readonly handleUploads: typeof handleUploads;
}

const FILES: Record<keyof Engines, string> = {
  putObject: "objects/put-object.ts",
  batchKeys: "upload/batches-of-keys.ts",
  claimBatch: "commit/batches.ts",
  removeObject: "objects/remove-object.ts",
  expireObjects: "maintenance/expire-objects.ts",
  findRestorable: "history/restore-object.ts",
  restoreVersion: "history/restore-object.ts",
  repairObject: "repair/repair-object.ts",
  scrubObjects: "maintenance/scrub/scrub-objects.ts",
  storeExtra: "maintenance/scrub/store-extra.ts",
  findRecodable: "maintenance/recode-object.ts",
  recodeVersion: "maintenance/recode-object.ts",
  renameRegions: "maintenance/rename.ts",
  applyKeys: "maintenance/apply-keys.ts",
  collectGarbage: "maintenance/gc/collect-garbage.ts",
  readManifest: "objects/manifests.ts",
  getObject: "objects/get-object.ts",
  verifyObject: "objects/verify-object.ts",
  Fence: "commit/fence.ts",
  announce: "commit/fence.ts",
  untilFenced: "commit/fence.ts",
  writeContextOf: "commit/write-context.ts",
  handleUploads: "page-uploads/handle-uploads.ts",
};

/** The sources of the storage library. */
export const SOURCES = fileURLToPath(new URL("../../src", import.meta.url));

/** The engines of the sources in a folder: the library as it is, or a changed copy. */
export async function loadEngines(folder = SOURCES): Promise<Engines> {
  const loaded = Object.entries(FILES).map(async ([name, file]) => {
    const module = (await import(/* @vite-ignore */ pathToFileURL(join(folder, file)).href)) as Record<string, unknown>;
    return [name, module[name]] as const;
  });
  return Object.fromEntries(await Promise.all(loaded)) as unknown as Engines;
}
