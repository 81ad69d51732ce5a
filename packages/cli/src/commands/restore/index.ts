/**
 * `agarose restore`: brings a version back that `keep` keeps.
 */
import type { Command } from "commander";
import { systemClock } from "@agarose/core";
import { DRY_RUN, type ConfirmOptions } from "../../lib/confirm.ts";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { findRestorable, restoreVersion } from "../../lib/objects/history/restore-object.ts";
import { printResult } from "../../lib/output.ts";
import { startProgress } from "../../lib/progress.ts";
import { dueLine, dueOf, reportOf, restoredLine, warnOfRestored } from "./restore-report.ts";

interface RestoreOptions extends GlobalOptions, Pick<ConfirmOptions, "dryRun"> {
  readonly version?: string;
}

/** Adds `agarose restore KEY`. The command exits with 1 when nothing that fits is kept, or it cannot be read. */
export function register(program: Command): void {
  program
    .command("restore")
    .description("put a version again that `keep` keeps, as a new one; the present version is kept, too")
    .argument("<key>", "key of the object")
    .option("--version <version>", "its 32 hex digits or its generation; default: the newest that is kept")
    .option(...DRY_RUN)
    .action((key: string, _options: unknown, command: Command) =>
      restore(key, command.optsWithGlobals<RestoreOptions>()),
    );
}

async function restore(key: string, { version, dryRun = false, ...options }: RestoreOptions): Promise<void> {
  await withContext(options, WRITING, async (command) => {
    const context = { ...command, nowMs: Date.now, breaker: new Breaker(systemClock) };
    const found = await findRestorable(key, version === undefined ? {} : { version }, context);
    if (dryRun) {
      const due = dueOf(found);
      printResult(context.json, { ...due, dryRun }, [dueLine(due)]);
      return;
    }
    const progress = startProgress("restore", { quiet: context.json });
    progress.addTotal(found.kept.bytes);
    try {
      const put = await restoreVersion(found, { ...context, onBytes: (_pass, bytes) => progress.add(bytes) });
      progress.stop();
      const report = reportOf(found, put);
      printResult(context.json, report, [restoredLine(report)]);
      warnOfRestored(report);
    } finally {
      progress.stop();
    }
  });
}
