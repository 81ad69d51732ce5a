/**
 * `agarose report`: one HTML file that shows what a deployment holds, how far each object is from being lost, and what
 * its PoPs do.
 */
import type { Command } from "commander";
import { systemClock } from "@agarose/core";
import { READING, withContext, type GlobalOptions } from "../../lib/context.ts";
import { writeNamed } from "../../lib/files/whole-file.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, printResult } from "../../lib/output.ts";
import { gather } from "./gather.ts";
import { pageOf } from "./page.ts";

interface ReportOptions extends GlobalOptions {
  readonly prefix?: string;
  readonly output: string;
}

/** Adds `agarose report`. The command exits with 1 when a region, a PoP or an object needs attention. */
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
      process.exitCode = await report(command.optsWithGlobals<ReportOptions>());
    });
}

async function report(options: ReportOptions): Promise<number> {
  return withContext(options, READING, async (command) => {
    const facts = await gather(options.prefix ?? "", { ...command, breaker: new Breaker(systemClock) });
    await writeNamed(options.output, (write) => write(Buffer.from(pageOf(facts))));
    const { use, attention } = facts;
    printResult(command.json, { file: options.output, ...facts }, [
      `${options.output}: ${formatCount(use.objects, "object")}, ` +
        (attention.length === 0 ? "nothing needs attention" : `${attention.length} points need attention`),
      ...attention.map((point) => `  ${point}`),
    ]);
    return attention.length === 0 ? EXIT_OK : EXIT_FAILED;
  });
}
