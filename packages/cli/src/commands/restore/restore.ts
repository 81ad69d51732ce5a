/** `agarose restore`: brings a version back that `keep` keeps. */
import { withContext, WRITING } from "../../lib/context.ts";
import { findRestorable, restoreVersion } from "@agarose/storage/history/restore-object";
import { printResult } from "../../ui/output.ts";
import { startProgress } from "../../ui/progress.ts";
import { dueLine, dueOf, reportOf, restoredLine } from "./restore-report.ts";
import { warnOfLacks } from "../../ui/leftovers.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose restore KEY`. The command exits with 1 when nothing that fits is kept, or it cannot be read. */
export async function restore({ key, version, dryRun = false, ...options }: Values<typeof args>): Promise<void> {
  await withContext(options, WRITING, async (context) => {
    const found = await findRestorable(key, version === undefined ? {} : { version }, context);
    if (dryRun) {
      const due = dueOf(found);
      printResult(context, { ...due, dryRun }, [dueLine(due)]);
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
