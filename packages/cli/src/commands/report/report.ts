/**
 * `agarose report`: one HTML file that shows what a deployment holds, how far each object is from being lost, and what
 * its PoPs do.
 */
import { READING, withContext, type GlobalOptions } from "../../lib/context.ts";
import { writeNamed } from "@agarose/storage/files/whole-file";
import { EXIT_FAILED, EXIT_OK, formatCount, printResult } from "../../ui/output.ts";
import { gather } from "./gather.ts";
import { pageOf } from "./page.ts";

/** The options of `agarose report`. */
export interface ReportOptions extends GlobalOptions {
  readonly prefix?: string;
  readonly output: string;
}

/** Runs `agarose report`. The command exits with 1 when a region, a PoP or an object needs attention. */
export async function report(options: ReportOptions): Promise<number> {
  return withContext(options, READING, async (command) => {
    const facts = await gather(options.prefix ?? "", command);
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
