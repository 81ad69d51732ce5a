/** Prints the tables of costs as Markdown, from the module that computes them. */
import { hostileTable } from "../../../packages/worker/scripts/hostile-costs.ts";
import { cooperationTable, costsByObjects, costTable } from "../../../packages/worker/scripts/operating-costs.ts";
import { NEXT_PART } from "../reference.ts";

process.stdout.write(
  [costTable(), costsByObjects(), cooperationTable(), hostileTable()].map((part) => `${part}\n`).join(NEXT_PART),
);
