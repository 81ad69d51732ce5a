/** `agarose restore`: brings a version back that `keep` keeps. */
import { findRestorable, restoreVersion, type Restorable } from "@agarose/storage/history/restore-object";
import type { PutResult } from "@agarose/storage/objects/put-object";
import { withContext, WRITING } from "../../lib/context.ts";
import { formatBytes, itemLine, printable, printResult, warnOfLacks } from "../../ui/output.ts";
import { startProgress } from "../../ui/progress.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose restore KEY`. The command exits with 1 when nothing that fits is kept, or it cannot be read. */
export async function restore({ key, version, dryRun = false, ...options }: Values<typeof args>): Promise<void> {
  await withContext(options, WRITING, async (context) => {
    const found = await findRestorable(key, version === undefined ? {} : { version }, context);
    if (dryRun) {
      const due = dueOf(found);
      printResult(context, { ...due, dryRun }, [restoredLine(due)]);
      return;
    }
    const progress = startProgress("restore", context);
    progress.addTotal(found.kept.bytes);
    try {
      const put = await restoreVersion(found, context, { onBytes: (_pass, bytes) => progress.add(bytes) });
      progress.stop();
      const report = reportOf(found, put);
      printResult(context, report, [restoredLine(report)]);
      warnOfLacks(report);
    } finally {
      progress.stop();
    }
  });
}

/** The new version, and the kept one that it repeats. */
export interface RestoreReport extends Omit<PutResult, "outcome"> {
  /** Others than `restored`: the object is as the kept version was, and this is what came of the put. */
  readonly outcome: "restored" | Exclude<PutResult["outcome"], "stored">;
  readonly restored: { readonly generation: number; readonly version: string; readonly modified: string };
}

/** The kept version that a dry run would bring back. */
export interface RestoreDue {
  readonly key: string;
  readonly outcome: "due";
  readonly restored: RestoreReport["restored"];
}

/** Describes what a restore would bring back. */
export function dueOf({ kept: { key, generation, version, modified } }: Restorable): RestoreDue {
  return { key, outcome: "due", restored: { generation, version, modified } };
}

/** Describes a restore that was done. */
export function reportOf({ kept: { generation, version, modified } }: Restorable, put: PutResult): RestoreReport {
  const outcome = put.outcome === "stored" ? "restored" : put.outcome;
  return { ...put, outcome, restored: { generation, version, modified } };
}

/** One line for people. */
export function restoredLine(report: RestoreReport | RestoreDue): string {
  const { key, restored } = report;
  const from = `generation ${restored.generation} of ${restored.modified}`;
  if (report.outcome === "due") return `would be restored  ${printable(key)}  ${from}`;
  return itemLine(report.outcome, key, formatBytes(report.bytes), `${from}, now generation ${report.generation}`);
}
