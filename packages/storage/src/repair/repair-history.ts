/**
 * Makes the chunks again that kept versions have lost. No manifest is written: a copy that is rewritten would begin
 * its time again.
 */
import { LEAF_LIST, type Manifest } from "@agarose/core/format";
import { listChunks } from "../objects/chunk-listing.ts";
import { keptVerdict, youngVersions, type HistoryVerdict } from "../history/verify-history.ts";
import { damageOf, type KeptVerdict } from "../objects/verify-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { rescueAll, type RepairHow, type Rescue } from "./repair-object.ts";

/** Findings, writes and remaining damage of a repair of a history. */
export interface HistoryRepair {
  readonly before: HistoryVerdict;
  readonly after: HistoryVerdict;
  readonly chunksWritten: number;
}

/** Repairs the versions that are kept of a key. One that cannot be read is reported, and the rest is repaired. */
export async function repairHistory(key: string, context: DeploymentParts, how: RepairHow): Promise<HistoryRepair> {
  const { manifests, problems } = await youngVersions(key, context);
  const [before, after]: [KeptVerdict[], KeptVerdict[]] = [[], []];
  let chunksWritten = 0;
  for (const manifest of manifests) {
    const { damage, written, lists } = await rescueOne(manifest, context, how);
    const left = damage.filter(({ chunk, region }) =>
      chunk === LEAF_LIST ? !lists.includes(region) : !written.includes(chunk),
    );
    before.push(keptVerdict(manifest, damage));
    after.push(keptVerdict(manifest, left));
    chunksWritten += written.length + lists.length;
  }
  return { before: { kept: before, problems }, after: { kept: after, problems }, chunksWritten };
}

async function rescueOne(manifest: Manifest, context: DeploymentParts, how: RepairHow): Promise<Rescue> {
  try {
    return await rescueAll(manifest, context, how);
  } catch {
    context.signal.throwIfAborted();
    // A machine that must not write says so, rather than that the version stays damaged.
    await context.fence?.check();
    return { damage: damageOf(manifest, await listChunks(manifest, context)), written: [], lists: [] };
  }
}
