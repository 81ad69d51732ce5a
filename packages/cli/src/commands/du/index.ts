/**
 * The help of `agarose du`.
 */
import type { Command } from "commander";
import type { DuOptions } from "./du.ts";

/** Adds `agarose du [PREFIX]`. */
export function register(program: Command): void {
  program
    .command("du")
    .description(
      "what the keys that begin with a prefix take in each region, what of it `keep` keeps, and what no manifest names",
    )
    .argument("[prefix]", "all keys when left out", "")
    .option("--cost", "also dollars a month, by storageUsdPerGbMonth of each region in the configuration")
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./du.ts")).du(prefix, command.optsWithGlobals<DuOptions>());
    });
}
