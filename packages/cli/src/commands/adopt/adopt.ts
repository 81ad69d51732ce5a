/** `agarose adopt`: stores the plain objects of the origin. */
import type { AdoptOutcome } from "@agarose/storage/origin/adopt-object";
import { adoptObjects, type AdoptTotals } from "@agarose/storage/origin/adopt-objects";
import type { ReleaseOutcome } from "@agarose/storage/origin/release-objects";
import { withReport, WRITING } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, failedLine, formatBytes, formatCount, itemLine, logLeftover } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose adopt [PREFIX]`. The command exits with 1 when an object could not be stored. */
export function adopt({ status, ...options }: Values<typeof args>): Promise<number> {
  const dryRun = options.dryRun === true || status === true;
  return withReport(options, WRITING, async (report, context) => {
    const onOutcome = async (outcome: AdoptOutcome): Promise<void> => {
      if (!status || outcome.outcome !== "due") await report.item(outcome, [plainLine(outcome)]);
    };
    const totals = await adoptObjects({ ...options, dryRun, onOutcome, onLeftover: logLeftover }, context);
    const { objects: listed, ...sums } = totals;
    await report.end({ listed, ...sums }, [summaryOf(totals, dryRun)]);
    return totals.failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

function summaryOf({ objects, bytes, adopted, adoptedBytes, newer, failed }: AdoptTotals, dryRun: boolean): string {
  const listed = `${formatCount(objects, "object")} at the origin (${formatBytes(bytes)})`;
  const now = `${adopted} ${dryRun ? "to be adopted" : "adopted"} (${formatBytes(adoptedBytes)})`;
  return `${listed}, ${now}, ${newer} newer at the origin, ${failed} failed`;
}

/** The outcome of an object that is, or becomes, a plain one. */
export function plainLine(result: AdoptOutcome | ReleaseOutcome): string {
  const { key, bytes, outcome } = result;
  if (outcome === "failed") return failedLine(key, result.error);
  return itemLine(outcome, key, outcome === "newer" ? result.problem : formatBytes(bytes));
}
