/**
 * The help of `agarose report`.
 */
import type { Command } from "commander";
import type { ReportOptions } from "./report.ts";

/** Adds `agarose report`. */
export function register(program: Command): void {
  program
    .command("report")
    .description(
      "write redundancy, storage, cost, popularity, hit ratios and latencies to one HTML file; AGAROSE_ADMIN_TOKEN is " +
        "for the PoPs, as for status",
    )
    .option("--prefix <prefix>", "only objects whose keys begin with this")
    .option("-o, --output <file>", "the file to write", "agarose-report.html")
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await (await import("./report.ts")).report(command.optsWithGlobals<ReportOptions>());
    });
}
