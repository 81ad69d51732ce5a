/**
 * `agarose recode`: stores objects again under the code and the placement that the configuration says now.
 */
import type { Command } from "commander";
import { AgaroseError, checkCode, systemClock, toAgaroseError, type Code } from "@agarose/core";
import type { Config } from "../../lib/config.ts";
import { withContext, WRITING, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { layoutOf } from "../../lib/objects/layout/object-layout.ts";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, printable } from "../../lib/output.ts";
import { currentManifest } from "../../lib/walk/listed-object.ts";
import { JSON_LINES, ReportStream } from "../../lib/walk/report-stream.ts";
import { CURSOR, walkObjects, type Walk, type WalkOptions } from "../../lib/walk/walk-objects.ts";
import { parseRate } from "../scrub/amounts.ts";
import { addEffort, effortOf, NO_EFFORT, type Effort } from "./estimate.ts";
import { isLaidOut, recodeObject } from "./recode-object.ts";

interface Options extends GlobalOptions, Omit<WalkOptions, "prefix"> {
  readonly code?: Code | "auto";
  readonly dryRun?: boolean;
  readonly rate?: number;
}

type Outcome = { readonly key: string } & (
  | { readonly outcome: "current" }
  | { readonly outcome: "recoded" | "due"; readonly from: string; readonly to: string; readonly effort: Effort }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

interface Totals extends Effort {
  readonly objects: number;
  /** Stored again, or with --dry-run to be. */
  readonly recoded: number;
  readonly failed: number;
}

const NONE: Totals = { objects: 0, recoded: 0, failed: 0, ...NO_EFFORT };
const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_DRY = 16;
const HOUR_S = 3_600;

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
  const { code, dryRun = false, rate } = options;
  if (rate !== undefined && !dryRun)
    throw new AgaroseError("USAGE", "--rate is for --dry-run: add it, or leave --rate out");
  return withContext(options, WRITING, async (command) => {
    const config: Config = code === undefined ? command.config : { ...command.config, code, codes: [] };
    if (code !== undefined && code !== "auto") checkCode({ ...code, stripeBytes: config.stripeBytes });
    // Refuses a layout that is unsafe before anything else happens.
    layoutOf(config, prefix, 0);
    const context = { ...command, config, nowMs: Date.now, breaker: new Breaker(systemClock) };
    const report = new ReportStream(options);
    const walk: Walk<Outcome, Totals> = {
      name: `recode${dryRun ? " dry" : ""} ${JSON.stringify(config.code)}`,
      keys: [],
      options: { ...options, prefix },
      objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
      async act(key, group) {
        try {
          const manifest = await currentManifest(group!, context);
          if (!manifest) return undefined;
          const layout = layoutOf(config, key, manifest.bytes);
          const change = { from: codeText(manifest), to: codeText(layout), effort: effortOf(manifest, layout, config) };
          if (!dryRun)
            return (await recodeObject(key, context))
              ? { key, outcome: "recoded", ...change }
              : { key, outcome: "current" };
          return (await isLaidOut(manifest, layout, config))
            ? { key, outcome: "current" }
            : { key, outcome: "due", ...change };
        } catch (error) {
          context.signal.throwIfAborted();
          return { key, outcome: "failed", error: toAgaroseError(error) };
        }
      },
      add,
      print: (result) => (result.outcome === "current" ? undefined : { value: result, lines: [lineOf(result)] }),
    };
    try {
      const totals = await walkObjects(walk, NONE, report, context);
      // In the document, "objects" are those that are listed.
      const { objects: checked, ...sums } = totals;
      await report.end({ checked, ...sums }, linesOf(totals, options));
      return totals.failed === 0 ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      return report.fail(error);
    }
  });
}

function add(totals: Totals, result: Outcome): Totals {
  const objects = totals.objects + 1;
  if (result.outcome === "failed") return { ...totals, objects, failed: totals.failed + 1 };
  if (result.outcome === "current") return { ...totals, objects };
  return { ...totals, ...addEffort(totals, result.effort), objects, recoded: totals.recoded + 1 };
}

function lineOf(result: Exclude<Outcome, { readonly outcome: "current" }>): string {
  const key = printable(result.key);
  if (result.outcome === "failed") return `failed   ${key}  ${result.error.code}: ${printable(result.error.message)}`;
  return `${result.outcome.padEnd(7)}  ${key}  ${result.from} to ${result.to}`;
}

function linesOf(totals: Totals, { dryRun = false, rate }: Options): string[] {
  const { objects, recoded, failed, readBytes, writtenBytes, requests, readUsdMax, usdPerMonth } = totals;
  const what = `${formatCount(objects, "object")}, ${recoded} ${dryRun ? "to be recoded" : "recoded"}, ${failed} failed`;
  if (!dryRun) return [what];
  const change = usdPerMonth < 0 ? `-$${(-usdPerMonth).toFixed(4)}` : `+$${usdPerMonth.toFixed(4)}`;
  return [
    what,
    `${formatBytes(readBytes)} to read, ${formatBytes(writtenBytes)} to write, ${requests} requests or more`,
    `at most $${readUsdMax.toFixed(4)} for reading; storage ${change} a month once \`agarose gc\` has removed the old chunks`,
    ...(rate === undefined ? [] : [`${((readBytes + writtenBytes) / rate / HOUR_S).toFixed(2)} hours at that rate`]),
  ];
}

function codeText({ k, m, inline }: Code & { readonly inline?: unknown }): string {
  return inline === true || typeof inline === "string" ? "inline" : `${k}+${m}`;
}

function parseCode(text: string): Code | "auto" {
  if (text === "auto") return text;
  const [, k, m] = /^(\d{1,3})\+(\d{1,3})$/.exec(text) ?? [];
  if (k !== undefined && Number(k) >= 1) return { k: Number(k), m: Number(m) };
  throw new AgaroseError("USAGE", `--code ${text} is no code: write 9+3 for 9 data and 3 parity chunks, or auto`);
}
