/**
 * The help of `agarose verify`.
 */
import type { Command } from "commander";
import { CURSOR, JSON_LINES } from "../../ui/options.ts";
import type { VerifyOptions } from "./verify.ts";

/** Adds `agarose verify`. */
export function register(program: Command): void {
  program
    .command("verify")
    .description(
      "check every manifest and every byte of every chunk, also of kept versions; exit 1 when something is damaged",
    )
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .option("--quick", "by what the regions list, without reading chunks: finds what is missing or has another length")
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await (await import("./verify.ts")).verify(keys, command.optsWithGlobals<VerifyOptions>());
    });
}
