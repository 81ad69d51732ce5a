/**
 * `agarose recode`: stores objects again under the code and the placement that the configuration says now.
 */
import type { Command } from "commander";
import { AgaroseError, checkCode, type Code } from "@agarose/core";
import type { Config } from "../../lib/config.ts";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { JSON_LINES } from "../../lib/walk/report-stream.ts";
import { CURSOR } from "../../lib/walk/walk-objects.ts";
import { LOG_FORMATS } from "@agarose/solver";
import { layoutOf } from "../../lib/objects/layout/object-layout.ts";
import { parseRate, parseShare } from "../scrub/amounts.ts";
import { collect, parseFormat } from "../simulate/own-log.ts";
import { hottestKeys, type HeatOptions } from "./hottest.ts";
import { recodeObjects, type RecodeOptions } from "./recode-objects.ts";

interface Options extends GlobalOptions, HeatOptions, Omit<RecodeOptions, "prefix" | "json"> {
  readonly code?: Code | "auto";
}

/** Adds `agarose recode [PREFIX]`. The command exits with 1 when an object could not be stored again. */
export function register(program: Command): void {
  program
    .command("recode")
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
      process.exitCode = await recode(prefix, command.optsWithGlobals<Options>());
    });
}

async function recode(prefix: string, options: Options): Promise<number> {
  const { code } = options;
  checkRate(options);
  if (code === undefined && options.hottest !== undefined) {
    throw new AgaroseError("USAGE", "--hottest needs the code of the hottest objects: add --code");
  }
  const hot = await hottestKeys(options);
  return withContext(options, WRITING, async (command) => {
    const { config } = command;
    if (code === undefined) return recodeObjects({ name: "recode" }, { ...options, prefix }, command);
    if (code !== "auto") checkCode({ ...code, stripeBytes: config.stripeBytes });
    const coded: Config = { ...config, code, codes: [], hot: undefined };
    if (!hot) return recodeObjects({ name: "recode" }, { ...options, prefix }, { ...command, config: coded });
    // Refuses a code that is unsafe before anything happens.
    layoutOf(coded, prefix, 0);
    const configOf = (key: string): Config => (hot.has(key) ? coded : config);
    return recodeObjects({ name: `recode hottest ${codeName(code)}`, configOf }, { ...options, prefix }, command);
  });
}

function codeName(code: Code | "auto"): string {
  return code === "auto" ? code : `${code.k}+${code.m}`;
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
