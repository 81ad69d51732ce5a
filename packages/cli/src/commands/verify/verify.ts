/** `agarose verify`: reads every stored byte of objects and says what is damaged and what still reads. */
import { inventoriesOf } from "@agarose/storage/listing/inventory";
import { verifyObjects, type VerifyTotals } from "@agarose/storage/maintenance/verify-objects";
import { stateOf, type ObjectVerdict } from "@agarose/storage/objects/verify-object";
import { READING, withReport } from "../../lib/context.ts";
import { refuseIdleInventory } from "../../ui/args.ts";
import { unreachableLine, verdictLines } from "../../ui/verdict-lines.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose verify`. The command exits with 1 when an object is damaged or a region did not answer. */
export async function verify(options: Values<typeof args>): Promise<number> {
  refuseIdleInventory(options);
  return withReport(options, READING, async (report, context) => {
    const onVerdict = (verdict: ObjectVerdict): Promise<void> =>
      report.item({ ...verdict, state: stateOf(verdict) }, verdictLines(verdict));
    const inventories = inventoriesOf(options.inventory, context, logLine);
    const { objects, unsound, ...totals } = await verifyObjects(
      { ...options, onVerdict, onWarning: logLine },
      { ...context, inventories },
    );
    await report.end(totals, [...totals.regionsUnreachable.map(unreachableLine), summaryOf({ ...totals, objects })]);
    return unsound === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

function summaryOf({ objects, damaged, unreadable, unchecked }: Omit<VerifyTotals, "unsound">): string {
  const rest = unchecked > 0 ? `, ${unchecked} not checked in full because a region did not answer` : "";
  return `${formatCount(objects, "object")}, ${damaged} damaged, ${unreadable} unreadable${rest}`;
}
