/**
 * The help of `agarose rm`.
 */
import type { Command } from "commander";
import { DRY_RUN, YES } from "../../ui/options.ts";
import type { RmOptions } from "./rm.ts";

/** Adds `agarose rm KEY…`. */
export function register(program: Command): void {
  program
    .command("rm")
    .description("remove objects; `gc` removes what their older versions left")
    .argument("[key...]", "keys of the objects")
    .option("--undelete", "bring back what was removed, as long as `keep` keeps it")
    .option("--prefix", "take each key as a prefix and remove every object whose key begins with it")
    .option("--no-purge", "leave the PoPs of the configuration as they are")
    .option("--all", "remove every object of the deployment; takes no key")
    .option(...DRY_RUN)
    .option(...YES)
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await (await import("./rm.ts")).rm(keys, command.optsWithGlobals<RmOptions>());
    });
}
