/**
 * The help of `agarose sync`.
 */
import type { Command } from "commander";
import { JSON_LINES, YES, collect, headerOption, jobsOption, consistencyOption } from "../../ui/options.ts";
import type { SyncOptions } from "./sync.ts";

/** Adds `agarose sync`. */
export function register(program: Command): void {
  program
    .command("sync")
    .description("make the objects below a prefix equal to the files of a folder; --get: the files to the objects")
    .argument("<source>", "a folder; with --get, a prefix")
    .argument("<target>", "a prefix, / for all keys; with --get, a folder")
    .option("--get", "from the objects to the folder")
    .option("--delete", "remove what the source does not have, last, and only if nothing failed")
    .option("--exclude <glob>", "leave out these names at both sides, repeatable", collect, [])
    .option("--include <glob>", "exceptions to --exclude; alone, only these names; repeatable", collect, [])
    .option("--dry-run", "say what would be done, and do nothing")
    .option(...YES)
    .option("--checksum", "compare content also where times or --cache say that nothing has changed")
    .option("--cache <file>", "remember in this file what is equal, so that the next run asks for nothing of it")
    .option("--follow", "follow links that lead out of the folder")
    .addOption(consistencyOption())
    .addOption(headerOption())
    .addOption(jobsOption())
    .option("--no-purge", "leave the PoPs of the configuration as they are")
    .option(...JSON_LINES)
    .action(async (source: string, target: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./sync.ts")).sync(source, target, command.optsWithGlobals<SyncOptions>());
    });
}
