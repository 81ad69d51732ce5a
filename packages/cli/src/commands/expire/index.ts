/**
 * `agarose expire`: removes the objects that are older than the rules of the configuration allow.
 */
import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { AgaroseError, systemClock } from "@agarose/core";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, printable } from "../../lib/output.ts";
import { readRegionClocks } from "../../lib/walk/region-clocks.ts";
import { JSON_LINES, ReportStream } from "../../lib/walk/report-stream.ts";
import { CURSOR, walkObjects, type Walk, type WalkOptions } from "../../lib/walk/walk-objects.ts";
import { commonPrefix, expireObject, type ExpireOutcome } from "./expire-object.ts";

interface Options extends GlobalOptions, Omit<WalkOptions, "prefix"> {
  readonly dryRun?: boolean;
}

interface Totals {
  /** Removed, or with --dry-run to be. */
  readonly expired: number;
  readonly bytes: number;
  readonly skipped: number;
  readonly failed: number;
}

const NONE: Totals = { expired: 0, bytes: 0, skipped: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 8;
const HOUR_MS = 3_600_000;

/** Adds `agarose expire`. The command exits with 1 when an object could not be removed. */
export function register(program: Command): void {
  program
    .command("expire")
    .description("remove the objects that are older than `expire` in the configuration allows")
    .option("--dry-run", "print what would be removed, and remove nothing")
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await expire(command.optsWithGlobals<Options>());
    });
}

async function expire(options: Options): Promise<number> {
  const { dryRun = false } = options;
  return withContext(options, WRITING, async (command) => {
    const { config } = command;
    if (config.expire.length === 0) {
      throw new AgaroseError("USAGE", "`expire` in the configuration has no rule: add one, such as tmp/ after 30d");
    }
    const report = new ReportStream(options);
    const now = { nowMs: Date.now, clock: systemClock };
    const walk: Walk<ExpireOutcome, Totals> = {
      name: `expire${dryRun ? " dry" : ""} ${JSON.stringify(config.expire)}`,
      keys: [],
      options: { ...options, prefix: commonPrefix(config) },
      objectsAtATime: OBJECTS_AT_A_TIME,
      act: (_key, group) => expireObject(group!, context),
      add,
      print: (result) => ({ value: result, lines: [lineOf(result)] }),
    };
    const ageOf = await readRegionClocks({ ...command, ...now, newName: randomUUID });
    const context = { ...command, ...now, breaker: new Breaker(systemClock), ageOf, dryRun };
    try {
      const totals = await walkObjects(walk, NONE, report, context);
      await report.end({ ...totals }, [summaryOf(totals, dryRun)]);
      return totals.failed === 0 ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      return report.fail(error);
    }
  });
}

function add(totals: Totals, result: ExpireOutcome): Totals {
  if (result.outcome === "failed") return { ...totals, failed: totals.failed + 1 };
  if (result.outcome === "skipped") return { ...totals, skipped: totals.skipped + 1 };
  return { ...totals, expired: totals.expired + 1, bytes: totals.bytes + result.bytes };
}

function lineOf(result: ExpireOutcome): string {
  const { key, outcome, ageMs } = result;
  const what = `${outcome.padEnd(7)}  ${printable(key)}`;
  if (outcome === "failed") return `${what}  ${result.error.code}: ${printable(result.error.message)}`;
  if (outcome === "skipped") return `${what}  ${printable(result.problem)}`;
  return `${what}  ${Math.floor(ageMs / HOUR_MS)} h old, ${formatBytes(result.bytes)}`;
}

function summaryOf({ expired, bytes, skipped, failed }: Totals, dryRun: boolean): string {
  const what = `${formatCount(expired, "object")} ${dryRun ? "to be removed" : "removed"} (${formatBytes(bytes)})`;
  return `${what}, ${skipped} skipped, ${failed} failed`;
}
