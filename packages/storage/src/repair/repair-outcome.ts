/** Repairs one object of many: a failure is a result, and the next object has its turn. */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { LEAF_LIST, type Manifest } from "@agarose/core/format";
import { keptVerdict, problemsOf, withHistory, youngVersions, type HistoryVerdict } from "../history/kept-versions.ts";
import { listChunks } from "../objects/chunk-listing.ts";
import { damageOf, type KeptVerdict } from "../objects/verify-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { repairObject, rescueAll, type RepairHow, type RepairReport, type Rescue } from "./repair-object.ts";

/** The outcome of one repair. */
export type RepairOutcome = { readonly key: string } & (
  | ({ readonly outcome: "sound" | "repaired" | "damaged" } & RepairReport)
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

/** Repairs an object and the versions that are kept of its key. Rejects only when the caller aborts. */
export async function repairOne(key: string, context: DeploymentParts, how: RepairHow): Promise<RepairOutcome> {
  try {
    // First, because an object that cannot be read any more is one to be restored.
    const history = await repairHistory(key, context, how);
    const own = await repairObject(key, context, how);
    const before = withHistory(own.before, history.before);
    const after = withHistory(own.after, history.after);
    const report = { ...own, before, after, chunksWritten: own.chunksWritten + history.chunksWritten };
    const outcome = report.before.sound ? "sound" : report.after.sound ? "repaired" : "damaged";
    return { key, outcome, ...report };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

/** Findings, writes and remaining damage of a repair of a history. */
interface HistoryRepair {
  readonly before: HistoryVerdict;
  readonly after: HistoryVerdict;
  readonly chunksWritten: number;
}

/**
 * Makes the chunks again that kept versions of a key have lost. One that cannot be read is reported, and the rest is
 * repaired. No manifest is written: a copy that is rewritten would begin its time again.
 */
async function repairHistory(key: string, context: DeploymentParts, how: RepairHow): Promise<HistoryRepair> {
  const young = await youngVersions(key, context.breaker.countResponsive(context.stores), context);
  const problems = problemsOf(young.problems);
  const [before, after]: [KeptVerdict[], KeptVerdict[]] = [[], []];
  let chunksWritten = 0;
  for (const manifest of young.manifests) {
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
