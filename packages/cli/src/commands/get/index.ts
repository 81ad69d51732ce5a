/**
 * The help of `agarose get`.
 */
import type { Command } from "commander";
import { consistencyOption } from "../../ui/options.ts";
import type { GetOptions } from "./get.ts";

/** Adds `agarose get KEY [FILE]`. */
export function register(program: Command): void {
  program
    .command("get")
    .description("read an object into a file, or to stdout (-)")
    .argument("<key>", "key of the object")
    .argument("[file]", "file or folder to write to, or - for stdout; default is the key's base name")
    .option("--range <range>", "bytes FIRST-LAST, FIRST- or -COUNT")
    .addOption(consistencyOption())
    .action(async (key: string, file: string | undefined, _options: unknown, command: Command) =>
      (await import("./get.ts")).get(key, file, command.optsWithGlobals<GetOptions>()),
    );
}
