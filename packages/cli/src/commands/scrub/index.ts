/**
 * The help of `agarose scrub`.
 */
import type { Command } from "commander";
import { AgaroseError } from "@agarose/core";
import { parseDuration, parseMoney, parseRate, parseShare } from "@agarose/storage/maintenance/amounts";
import { CURSOR, JSON_LINES } from "../../ui/options.ts";
import type { Options } from "./scrub.ts";

/** The longest timer of the system. */
const EVERY_MS_MAX = 24 * 86_400_000;

/** Adds `agarose scrub`. */
export function register(program: Command): void {
  program
    .command("scrub")
    .description(
      "find objects with missing chunks by what the regions list, and repair first those with the fewest chunks " +
        "beyond k; exit 1 when something stays damaged",
    )
    .option("--prefix <prefix>", "only objects whose keys begin with this")
    .option("--every <duration>", "begin a walk so often until Ctrl-C, such as 1d", parseEvery)
    .option("--sample <share>", "read this share of the objects in full, at random, such as 1%", parseShare)
    .option(
      "--age <duration>",
      "read another part of the objects in full each time, so that each is read within this, such as 30d",
      parseDuration,
    )
    .option("--bandwidth <rate>", "read no more of that than this on average, such as 10MB/s", parseRate)
    .option("--money <dollars>", "read no more of that in a walk than this buys, by egressUsdPerGb", parseMoney)
    .option("--metrics <file>", "write what a walk found for Prometheus, in the format of node_exporter's text files")
    .option("--dry-run", "print what is damaged, in the order of danger, and repair nothing")
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await (await import("./scrub.ts")).scrub(command.optsWithGlobals<Options>());
    });
}

function parseEvery(text: string): number {
  const ms = parseDuration(text);
  if (ms <= EVERY_MS_MAX) return ms;
  throw new AgaroseError("USAGE", `--every ${text} is more than 24d: start a walk from cron instead`);
}
