/**
 * The help of `agarose repair`.
 */
import type { Command } from "commander";
import { CURSOR, DRY_RUN, JSON_LINES } from "../../ui/options.ts";
import type { RepairOptions } from "./repair.ts";

/** Adds `agarose repair`. */
export function register(program: Command): void {
  program
    .command("repair")
    .description(
      "find and rewrite what is missing or damaged, first of all what the repair queue names; reads at most k + 2 " +
        "chunks of an object; exit 1 when something stays damaged",
    )
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .option("--queued", "only what the repair queue and PoPs name: what puts and removals could not finish")
    .option("--quick", "find damage by what the regions list, without reading chunks of sound objects")
    .option(...DRY_RUN)
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await (await import("./repair.ts")).repair(keys, command.optsWithGlobals<RepairOptions>());
    });
}
