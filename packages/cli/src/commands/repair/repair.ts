/** `agarose repair`: verifies objects and rewrites what is missing or damaged. */
import { AgaroseError } from "@agarose/core";
import { inventoriesOf } from "@agarose/storage/listing/inventory";
import { repairObjects } from "@agarose/storage/maintenance/repair-objects";
import type { RepairOutcome } from "@agarose/storage/repair/repair-outcome";
import { withReport, WRITING } from "../../lib/context.ts";
import { refuseIdleInventory } from "../../ui/args.ts";
import { repairLines, unreachableLine } from "../../ui/verdict-lines.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose repair`. The command exits with 1 while an object is still damaged. */
export async function repair(options: Values<typeof args>): Promise<number> {
  const { keys, queued, dryRun } = options;
  if (queued && keys.length > 0) throw new AgaroseError("USAGE", "give either keys or --queued");
  refuseIdleInventory(options);
  return withReport(options, WRITING, async (report, context) => {
    const onOutcome = (outcome: RepairOutcome): Promise<void> => report.item(outcome, repairLines(outcome));
    const inventories = inventoriesOf(options.inventory, context, logLine);
    const totals = await repairObjects({ ...options, onOutcome, onWarning: logLine }, { ...context, inventories });
    const { regionsUnreachable, ...counts } = totals;
    const { sound, repaired, damaged, failed } = counts;
    const objects = formatCount(sound + repaired + damaged + failed, "object");
    await report.end({ ...counts, ...(dryRun && { dryRun }) }, [
      ...regionsUnreachable.map(unreachableLine),
      dryRun
        ? `${objects}, ${damaged} damaged, ${failed} failed; nothing was written`
        : `${objects}, ${repaired} repaired, ${damaged} still damaged, ${failed} failed`,
    ]);
    return damaged + failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}
