/**
 * `agarose recode`: stores objects again under the code and the placement that the configuration says now.
 */
import type { Command } from "commander";
import { AgaroseError, checkCode, type Code } from "@agarose/core";
import type { Config } from "../../lib/config.ts";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { JSON_LINES } from "../../lib/walk/report-stream.ts";
import { CURSOR } from "../../lib/walk/walk-objects.ts";
import { parseRate } from "../scrub/amounts.ts";
import { recodeObjects, type RecodeOptions } from "./recode-objects.ts";

interface Options extends GlobalOptions, Omit<RecodeOptions, "prefix" | "json"> {
  readonly code?: Code | "auto";
}

/** Adds `agarose recode [PREFIX]`. The command exits with 1 when an object could not be stored again. */
export function register(program: Command): void {
  program
    .command("recode")
    .description("store objects again whose code or placement is not what the configuration says now")
    .argument("[prefix]", "only of keys that begin with this", "")
    .option("--code <code>", "a code in place of that of the configuration, such as 9+3, or auto", parseCode)
    .option("--dry-run", "print the bytes, requests and dollars that it takes, and store nothing")
    .option("--rate <rate>", "with --dry-run: print the hours that it takes at this, such as 50MB/s", parseRate)
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (prefix: string, _options: unknown, command: Command) => {
      process.exitCode = await recode(prefix, command.optsWithGlobals<Options>());
    });
}

async function recode(prefix: string, options: Options): Promise<number> {
  const { code } = options;
  checkRate(options);
  return withContext(options, WRITING, async (command) => {
    const config: Config = code === undefined ? command.config : { ...command.config, code, codes: [] };
    if (code !== undefined && code !== "auto") checkCode({ ...code, stripeBytes: config.stripeBytes });
    return recodeObjects({ name: "recode" }, { ...options, prefix }, { ...command, config });
  });
}

/** Throws USAGE for a rate without --dry-run. */
export function checkRate({ rate, dryRun }: Pick<RecodeOptions, "rate" | "dryRun">): void {
  if (rate === undefined || dryRun) return;
  throw new AgaroseError("USAGE", "--rate is for --dry-run: add it, or leave --rate out");
}

function parseCode(text: string): Code | "auto" {
  if (text === "auto") return text;
  const [, k, m] = /^(\d{1,3})\+(\d{1,3})$/.exec(text) ?? [];
  if (k !== undefined && Number(k) >= 1) return { k: Number(k), m: Number(m) };
  throw new AgaroseError("USAGE", `--code ${text} is no code: write 9+3 for 9 data and 3 parity chunks, or auto`);
}
