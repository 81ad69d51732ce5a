/** `agarose release`: writes the objects as plain ones. */
import { releaseObjects, type ReleaseOutcome, type ReleaseTotals } from "@agarose/storage/origin/release-objects";
import { withReport, WRITING } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, logLine } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import { plainLine } from "../adopt/adopt.ts";
import type { args } from "./index.ts";

/** Runs `agarose release [PREFIX]`. The command exits with 1 when an object could not be written. */
export function release(options: Values<typeof args>): Promise<number> {
  return withReport(options, WRITING, async (report, context) => {
    const onOutcome = (outcome: ReleaseOutcome): Promise<void> => report.item(outcome, [plainLine(outcome)]);
    const totals = await releaseObjects({ ...options, onOutcome, onWarning: logLine }, context);
    await report.end(totals, [summaryOf(totals, options.dryRun === true)]);
    return totals.failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

function summaryOf({ released, releasedBytes, equal, newer, extra, failed }: ReleaseTotals, dryRun: boolean): string {
  const now = `${released} ${dryRun ? "to be released" : "released"} (${formatBytes(releasedBytes)})`;
  return `${now}, ${equal} equal, ${newer} newer in the bucket, ${extra} extra in the bucket, ${failed} failed`;
}
