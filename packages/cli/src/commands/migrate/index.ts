/**
 * The help of `agarose migrate`.
 */
import type { Command } from "commander";
import { parseRate } from "@agarose/storage/maintenance/amounts";
import { CURSOR, JSON_LINES, YES } from "../../ui/options.ts";
import type { Options } from "./migrate.ts";

/** Adds `agarose migrate NEXT`. */
export function register(program: Command): void {
  program
    .command("migrate")
    .description(
      "add, replace, rename or remove regions and providers, or change the code, in three steps that no reader notices",
    )
    .argument("<next>", "the configuration to come, in the folder of the current one")
    .option("--dry-run", "print the bytes, requests and dollars that it takes; with --finish, what it leaves out")
    .option("--rate <rate>", "with --dry-run: print the hours that it takes at this, such as 50MB/s", parseRate)
    .option("--move", "the second step: store objects where the next configuration wants them")
    .option("--finish", "the third step: leave out the regions that are empty")
    .option(...YES)
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (next: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./migrate.ts")).migrate(next, command.optsWithGlobals<Options>());
    });
}
