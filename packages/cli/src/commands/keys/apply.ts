/**
 * `agarose keys apply`: has the current key sign what another one has signed, and the first secret encrypt the data
 * keys of encrypted objects, kept versions included. The chunks stay where they are.
 */
import { applyKeysToObjects, type ApplyKeysOutcome } from "@agarose/storage/maintenance/apply-keys";
import { withReport, WRITING } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, failedLine, formatCount, itemLine, logLine } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { applyArgs } from "./index.ts";

/** Runs `agarose keys apply [KEY]`. The command exits with 1 when an object could not be signed or encrypted again. */
export function apply({ vouch = false, acceptNewest = false, ...options }: Values<typeof applyArgs>): Promise<number> {
  const { dryRun } = options;
  return withReport(options, WRITING, async (report, context) => {
    const onOutcome = (object: ApplyKeysOutcome): Promise<void> =>
      report.item(object, object.outcome === "current" ? [] : [lineOf(object)]);
    const how = { vouches: vouch, acceptsNewest: acceptNewest, onOutcome, onWarning: logLine };
    const { applied, due, current, failed } = await applyKeysToObjects({ ...options, ...how }, context);
    const objects = formatCount(applied + due + current + failed, "object");
    const what = dryRun ? `${due} due` : `${applied} applied`;
    await report.end({ ...(dryRun && { dryRun }) }, [`${objects}, ${what}, ${failed} failed`]);
    return failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

function lineOf(object: ApplyKeysOutcome): string {
  return object.outcome === "failed" ? failedLine(object.key, object.error) : itemLine(object.outcome, object.key);
}
