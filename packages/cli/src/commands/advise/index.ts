/**
 * The help of `agarose advise`.
 */
import type { Command } from "commander";
import { LOG_FORMATS } from "@agarose/solver/traces";
import { collect, parseFormat } from "../../ui/options.ts";
import type { AdviseOptions } from "./advise.ts";

/** Adds `agarose advise FILE`. */
export function register(program: Command): void {
  program
    .command("advise")
    .description(
      "say whether to use coded objects: rank codes, regions and cache sizes by latency, cost and nines, beside a CDN",
    )
    .argument("<file>", "JSON of docs/reference/scenarios.md, such as samples/advice.json: regions, prices, audience")
    .option(
      "--trace <log>",
      "take objects, sizes, reads and popularity from this access log; repeatable; - is standard input",
      collect,
    )
    .option("--format <name>", `format of the log, if it is not recognised: ${LOG_FORMATS.join(", ")}`, parseFormat)
    .action(async (file: string, _options: unknown, command: Command) => {
      await (await import("./advise.ts")).adviseFor(file, command.optsWithGlobals<AdviseOptions>());
    });
}
