/** `agarose expire`: removes the objects that are older than the rules of the configuration allow. */
import { AgaroseError } from "@agarose/core";
import { confirm } from "../../ui/confirm.ts";
import { withReport, WRITING } from "../../lib/context.ts";
import {
  EXIT_FAILED,
  EXIT_OK,
  failedLine,
  formatBytes,
  formatCount,
  itemLine,
  logLine,
  printable,
} from "../../ui/output.ts";
import { expireObjects, type ExpireOutcome, type ExpireTotals } from "@agarose/storage/maintenance/expire-objects";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

const HOUR_MS = 3_600_000;

/** Runs `agarose expire`. The command exits with 1 when an object could not be removed. */
export function expire(options: Values<typeof args>): Promise<number> {
  return withReport(options, WRITING, async (report, context) => {
    if (context.config.expire.length === 0) {
      throw new AgaroseError("USAGE", "`expire` in the configuration has no rule: add one, such as tmp/ after 30d");
    }
    const rules = context.config.expire.map(
      ({ prefix, time }) => `${JSON.stringify(prefix)} after ${time / HOUR_MS} h`,
    );
    const summary = [`This removes every object that is older than its rule allows: ${rules.join(", ")}.`];
    await confirm({ summary, question: "Remove them?" }, options, context.signal);
    const onOutcome = (outcome: ExpireOutcome): Promise<void> => report.item(outcome, [lineOf(outcome)]);
    const totals = await expireObjects({ ...options, onOutcome, onWarning: logLine }, context);
    await report.end({ ...totals }, [summaryOf(totals, options)]);
    return totals.failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

function summaryOf({ expired, bytes, skipped, failed }: ExpireTotals, { dryRun = false }: Values<typeof args>): string {
  const what = `${formatCount(expired, "object")} ${dryRun ? "to be removed" : "removed"} (${formatBytes(bytes)})`;
  return `${what}, ${skipped} skipped, ${failed} failed`;
}

function lineOf(result: ExpireOutcome): string {
  const { key, outcome, ageMs } = result;
  if (outcome === "failed") return failedLine(key, result.error);
  if (outcome === "skipped") return itemLine(outcome, key, printable(result.problem));
  return itemLine(outcome, key, `${Math.floor(ageMs / HOUR_MS)} h old, ${formatBytes(result.bytes)}`);
}
