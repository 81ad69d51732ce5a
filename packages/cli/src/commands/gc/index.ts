/**
 * The help of `agarose gc`.
 */
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import { CURSOR, JSON_LINES, YES } from "../../ui/options.ts";
import type { GcOptions } from "./gc.ts";

const HOURS_MIN = 1;
/** Adds `agarose gc`. */
export function register(program: Command): void {
  program
    .command("gc")
    .description("find chunks that no manifest names: puts that failed and versions that were replaced leave them")
    .argument("[prefix]", "only of keys that begin with this", "")
    .option("--older-than <hours>", "delete only what was marked so long ago, at least 1", parseHours, 24)
    .option("--delete", "mark what is found, and delete what an earlier run marked; without it they are only listed")
    .option(
      "--forget-removed",
      "with --delete, also remove tombstones of 30 days; a bucket may then replay old objects",
    )
    .option("--dry-run", "list what is found, and neither mark nor delete, also beside --delete")
    .option(...YES)
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./gc.ts")).gc(prefix, command.optsWithGlobals<GcOptions>());
    });
}

function parseHours(text: string): number {
  const hours = Number(text);
  if (hours >= HOURS_MIN && hours <= 87_600) return hours;
  throw new AgaroseError(
    "USAGE",
    `--older-than ${text} is not a number of hours of ${HOURS_MIN} or more: younger chunks may belong to a put ` +
      "that is under way. To remove an object with its chunks at once, use `agarose rm`",
  );
}
