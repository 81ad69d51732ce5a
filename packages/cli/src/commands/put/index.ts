/**
 * The help of `agarose put`.
 */
import type { Command } from "commander";
import { headerOption, jobsOption } from "../../ui/options.ts";
import type { PutOptions } from "./put.ts";

/** Adds `agarose put FILE…`. */
export function register(program: Command): void {
  program
    .command("put")
    .description("store files, folders or stdin (-) as objects")
    .argument("<path...>", "files or folders, or - for stdin")
    .option("--key <key>", "key of the object, or of the folder; default is the base name")
    .option("--prefix <prefix>", "text before every key, used as it is")
    .option("--content-type <type>", "default: by the extension of the key")
    .addOption(headerOption())
    .addOption(jobsOption())
    .option("--force", "upload objects that are stored unchanged, too")
    .option("--follow", "follow links that lead out of a folder")
    .option("--no-purge", "leave the PoPs of the configuration as they are")
    .option("--dry-run", "say which objects would be new, replaced or unchanged, and store nothing")
    .action(async (paths: string[], _options: unknown, command: Command) => {
      process.exitCode = await (await import("./put.ts")).put(paths, command.optsWithGlobals<PutOptions>());
    });
}
