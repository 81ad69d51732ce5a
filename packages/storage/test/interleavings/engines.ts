/**
 * The engines under test: what the commands call once they have read their arguments.
 */
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { expireObjects } from "../../src/commands/expire/expire-objects.ts";
import type { collectGarbage } from "../../src/commands/gc/collect-garbage.ts";
import type { renameRegions } from "../../src/commands/migrate/rename.ts";
import type { findRecodable, recodeVersion } from "../../src/commands/recode/recode-object.ts";
import type { scrubObjects } from "../../src/commands/scrub/scrub-objects.ts";
import type { announce, Fence, untilFenced } from "../../src/lib/objects/commit/fence.ts";
import type { repairObject } from "../../src/lib/objects/repair/repair-object.ts";
import type { upgradeObject } from "../../src/commands/upgrade/upgrade-object.ts";
import type { getObject } from "../../src/lib/objects/get-object.ts";
import type { readManifest } from "../../src/lib/objects/manifests.ts";
import type { putObject } from "../../src/lib/objects/put-object.ts";
import type { findRestorable, restoreVersion } from "../../src/lib/objects/history/restore-object.ts";
import type { removeObject } from "../../src/lib/objects/remove-object.ts";
import type { verifyObject } from "../../src/lib/objects/verify-object.ts";

export interface Engines {
  readonly putObject: typeof putObject;
  readonly removeObject: typeof removeObject;
  readonly expireObjects: typeof expireObjects;
  readonly findRestorable: typeof findRestorable;
  readonly restoreVersion: typeof restoreVersion;
  readonly repairObject: typeof repairObject;
  readonly scrubObjects: typeof scrubObjects;
  readonly findRecodable: typeof findRecodable;
  readonly recodeVersion: typeof recodeVersion;
  readonly renameRegions: typeof renameRegions;
  readonly upgradeObject: typeof upgradeObject;
  readonly collectGarbage: typeof collectGarbage;
  readonly readManifest: typeof readManifest;
  readonly getObject: typeof getObject;
  readonly verifyObject: typeof verifyObject;
  readonly Fence: typeof Fence;
  readonly announce: typeof announce;
  readonly untilFenced: typeof untilFenced;
}

const FILES: Record<keyof Engines, string> = {
  putObject: "lib/objects/put-object.ts",
  removeObject: "lib/objects/remove-object.ts",
  expireObjects: "commands/expire/expire-objects.ts",
  findRestorable: "lib/objects/history/restore-object.ts",
  restoreVersion: "lib/objects/history/restore-object.ts",
  repairObject: "lib/objects/repair/repair-object.ts",
  scrubObjects: "commands/scrub/scrub-objects.ts",
  findRecodable: "commands/recode/recode-object.ts",
  recodeVersion: "commands/recode/recode-object.ts",
  renameRegions: "commands/migrate/rename.ts",
  upgradeObject: "commands/upgrade/upgrade-object.ts",
  collectGarbage: "commands/gc/collect-garbage.ts",
  readManifest: "lib/objects/manifests.ts",
  getObject: "lib/objects/get-object.ts",
  verifyObject: "lib/objects/verify-object.ts",
  Fence: "lib/objects/commit/fence.ts",
  announce: "lib/objects/commit/fence.ts",
  untilFenced: "lib/objects/commit/fence.ts",
};

/** The sources of the command line. */
export const SOURCES = fileURLToPath(new URL("../../src", import.meta.url));

/** The engines of the sources in a folder: the command line's own, or a changed copy. */
export async function loadEngines(folder = SOURCES): Promise<Engines> {
  const loaded = Object.entries(FILES).map(async ([name, file]) => {
    const module = (await import(/* @vite-ignore */ pathToFileURL(join(folder, file)).href)) as Record<string, unknown>;
    return [name, module[name]] as const;
  });
  return Object.fromEntries(await Promise.all(loaded)) as unknown as Engines;
}
