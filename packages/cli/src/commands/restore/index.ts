/**
 * The help of `agarose restore`.
 */
import type { Command } from "commander";
import { DRY_RUN } from "../../ui/options.ts";
import type { RestoreOptions } from "./restore.ts";

/** Adds `agarose restore KEY`. */
export function register(program: Command): void {
  program
    .command("restore")
    .description("put a version again that `keep` keeps, as a new one; the present version is kept, too")
    .argument("<key>", "key of the object")
    .option("--version <version>", "its 32 hex digits or its generation; default: the newest that is kept")
    .option(...DRY_RUN)
    .action(async (key: string, _options: unknown, command: Command) =>
      (await import("./restore.ts")).restore(key, command.optsWithGlobals<RestoreOptions>()),
    );
}
