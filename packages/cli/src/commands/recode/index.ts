/**
 * The help of `agarose recode`.
 */
import type { Command } from "commander";
import { AgaroseError } from "@agarose/core";
import type { Code } from "@agarose/core/format";
import { parseRate, parseShare } from "@agarose/storage/maintenance/amounts";
import { LOG_FORMATS } from "@agarose/solver/traces";
import { CURSOR, JSON_LINES, collect, parseFormat } from "../../ui/options.ts";
import type { Options } from "./recode.ts";

/** Adds `agarose recode [PREFIX]`. */
export function register(program: Command): void {
  program
    .command("recode")
    .helpGroup("Deployment:")
    .description("store objects again whose code or placement is not what the configuration says now")
    .argument("[prefix]", "only of keys that begin with this", "")
    .option("--code <code>", "a code in place of that of the configuration, such as 9+3, or auto", parseCode)
    .option("--hottest <share>", "--code for this share of the objects in --log alone, such as 5%", parseShare)
    .option(
      "--log <file>",
      "an access log, repeatable, or - for stdin: all other objects get the code of the configuration",
      collect,
    )
    .option("--format <format>", `of the log: ${LOG_FORMATS.join(", ")} (default: recognised)`, parseFormat)
    .option("--log-prefix <text>", "what the log has before every key, such as ec/")
    .option("--dry-run", "print the bytes, requests and dollars that it takes, and store nothing")
    .option("--rate <rate>", "with --dry-run: print the hours that it takes at this, such as 50MB/s", parseRate)
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await (await import("./recode.ts")).recode(prefix, command.optsWithGlobals<Options>());
    });
}

function parseCode(text: string): Code | "auto" {
  if (text === "auto") return text;
  const [, k, m] = /^(\d{1,3})\+(\d{1,3})$/.exec(text) ?? [];
  if (k !== undefined && Number(k) >= 1) return { k: Number(k), m: Number(m) };
  throw new AgaroseError("USAGE", `--code ${text} is no code: write 9+3 for 9 data and 3 parity chunks, or auto`);
}
