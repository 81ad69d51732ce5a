/** Repairs one object of many: a failure is a result, and the next object has its turn. */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { withHistory } from "../history/verify-history.ts";
import type { DeploymentParts } from "../parts.ts";
import { repairHistory } from "./repair-history.ts";
import { repairObject, type RepairHow, type RepairReport } from "./repair-object.ts";

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
