/** A walk that stores objects again, as it is printed: `recode`, and the second step of `migrate`. */
import {
  recodeObjects,
  type RecodeOptions,
  type RecodeOutcome,
  type RecodeTotals,
} from "@agarose/storage/maintenance/recode-objects";
import type { CommandContext } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, failedLine, formatBytes, formatCount, itemLine, logLine } from "../../ui/output.ts";
import { reportWalk, type ReportOptions } from "../../ui/report-stream.ts";

/** The work, and how to print it. */
export interface RecodeReportOptions extends Omit<RecodeOptions, "onWarning" | "onOutcome">, ReportOptions {
  /** Bytes per second that a dry run counts with. */
  readonly rate?: number;
  /** Lines after the summary of a run without failures. */
  readonly next?: readonly string[];
}

const HOUR_S = 3_600;

/** Walks, prints, and resolves to the exit code: 1 when an object failed. */
export function reportRecode(options: RecodeReportOptions, context: CommandContext): Promise<number> {
  return reportWalk(options, async (report) => {
    const onOutcome = (outcome: RecodeOutcome): Promise<void> => report.item(outcome, [lineOf(outcome)]);
    const totals = await recodeObjects({ ...options, onOutcome, onWarning: logLine }, context);
    // In the document, "objects" are those that are listed.
    const { objects: checked, ...sums } = totals;
    const isDone = totals.failed === 0;
    await report.end({ checked, ...sums }, [...linesOf(totals, options), ...(isDone ? (options.next ?? []) : [])]);
    return isDone ? EXIT_OK : EXIT_FAILED;
  });
}

function lineOf(result: RecodeOutcome): string {
  const { key, outcome } = result;
  if (outcome === "failed") return failedLine(key, result.error);
  if (!("from" in result))
    return itemLine(outcome, key, `manifests ${outcome === "completed" ? "copied" : "to be copied"}`);
  const { from, to } = result;
  return itemLine(outcome, key, from === to ? `${to}, in other regions or another way` : `${from} to ${to}`);
}

function linesOf(totals: RecodeTotals, { dryRun = false, rate }: RecodeReportOptions): string[] {
  const { objects, recoded, completed, failed, readBytes, writtenBytes, requests, readUsdMax, usdPerMonth } = totals;
  const copies = completed === undefined ? "" : `, ${completed} manifests ${dryRun ? "to be copied" : "copied"}`;
  const what = `${formatCount(objects, "object")}, ${recoded} ${dryRun ? "to be recoded" : "recoded"}${copies}, ${failed} failed`;
  if (!dryRun) return [what];
  const change = usdPerMonth < 0 ? `-$${(-usdPerMonth).toFixed(4)}` : `+$${usdPerMonth.toFixed(4)}`;
  return [
    what,
    `${formatBytes(readBytes)} to read, ${formatBytes(writtenBytes)} to write, ${requests} requests or more`,
    `at most $${readUsdMax.toFixed(4)} for reading; storage ${change} a month once \`agarose gc\` has removed the old chunks`,
    ...(rate === undefined ? [] : [`${((readBytes + writtenBytes) / rate / HOUR_S).toFixed(2)} hours at that rate`]),
  ];
}
