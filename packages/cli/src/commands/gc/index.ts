/**
 * `agarose gc`: finds chunks that no manifest names, and removes them with --delete.
 */
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { collectGarbage, type GarbageReport } from "./collect-garbage.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, logLine, printable, printResult } from "../../lib/output.ts";

interface GcOptions extends GlobalOptions {
  readonly olderThan: number;
  readonly delete?: boolean;
}

/** A put that takes longer than this has its chunks at risk. */
const HOURS_MIN = 1;
const HOUR_MS = 3_600_000;

export function register(program: Command): void {
  program
    .command("gc")
    .description("find chunks that no manifest names: puts that failed and versions that were replaced leave them")
    .argument("[prefix]", "only of keys that begin with this", "")
    .option("--older-than <hours>", "only chunks older than this, at least 1", parseHours, 24)
    .option("--delete", "remove them; without it they are only listed")
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await gc(prefix, command.optsWithGlobals<GcOptions>());
    });
}

async function gc(prefix: string, options: GcOptions): Promise<number> {
  return withContext(options, WRITING, async ({ stores, json, signal }) => {
    const beforeMs = Date.now() - options.olderThan * HOUR_MS;
    const removes = options.delete ?? false;
    const report = await collectGarbage({ stores, prefix, beforeMs, signal }, removes);
    const { orphans, bytes, younger, leftovers } = report;
    const hint = removes || orphans.length === 0 ? "" : ": --delete removes them";
    printResult(json, report, [
      ...orphans.map(({ region, name, bytes: length, removed }) => {
        return `${removed ? "removed" : "orphan "}  ${region}  ${printable(name)}  ${formatBytes(length)}`;
      }),
      `${formatCount(orphans.length, "orphan")}, ${formatBytes(bytes)}${hint}`,
      ...(younger.count > 0 ? [youngerLine(younger, options.olderThan)] : []),
    ]);
    for (const { region, name, problem } of leftovers) logLine(`left     ${region} ${printable(name)}: ${problem}`);
    return leftovers.length > 0 ? EXIT_FAILED : EXIT_OK;
  });
}

function youngerLine({ count, bytes }: GarbageReport["younger"], hours: number): string {
  return (
    `${formatCount(count, "chunk")} without a manifest, ${formatBytes(bytes)}, not older than ${hours} h: ` +
    "kept, because a put may be under way (--older-than)"
  );
}

function parseHours(text: string): number {
  const hours = Number(text);
  if (hours >= HOURS_MIN && hours <= 87_600) return hours;
  throw new AgaroseError(
    "USAGE",
    `--older-than ${text} is not a number of hours of ${HOURS_MIN} or more: younger chunks may belong to a put ` +
      "that is under way. To remove an object with all its chunks at once, use `agarose rm`",
  );
}
