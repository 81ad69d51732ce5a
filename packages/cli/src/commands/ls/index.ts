/**
 * The help of `agarose ls`.
 */
import type { Command } from "commander";
import { JSON_LINES, consistencyOption } from "../../ui/options.ts";
import type { LsOptions } from "./ls.ts";

/** Adds `agarose ls [PREFIX]`. */
export function register(program: Command): void {
  program
    .command("ls")
    .description("list the keys that begin with a prefix")
    .argument("[prefix]", "all keys when left out", "")
    .option("-l, --long", "also length, type and version, from the manifests")
    .option("--after <key>", "only keys that come after this one, as a list that was cut short continues")
    .addOption(consistencyOption())
    .option(...JSON_LINES)
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./ls.ts")).ls(prefix, command.optsWithGlobals<LsOptions>());
    });
}
