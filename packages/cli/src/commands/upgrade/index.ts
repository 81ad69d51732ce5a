/**
 * The help of `agarose upgrade`.
 */
import type { Command } from "commander";
import { CURSOR, JSON_LINES } from "../../ui/options.ts";
import type { UpgradeOptions } from "./upgrade.ts";

/** Adds `agarose upgrade [KEY]`. */
export function register(program: Command): void {
  program
    .command("upgrade")
    .description(
      "bring manifests of format 1 to format 2, and sign what the current key has not signed; no chunk is moved; " +
        "refuses unsigned objects whose regions differ",
    )
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .option("--accept-newest", "where regions hold different manifests, take the newest")
    .option("--vouch", "sign unsigned manifests of format 2, too: you vouch for them")
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await (await import("./upgrade.ts")).upgrade(keys, command.optsWithGlobals<UpgradeOptions>());
    });
}
