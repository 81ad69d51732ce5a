/**
 * Stores objects again whose code or placement is not what a configuration says, one key after the other: `recode`, and
 * the second step of `migrate`.
 */
import type { AgaroseError } from "@agarose/core";
import type { Code } from "@agarose/core/format";
import type { Config } from "@agarose/storage/config/config";
import type { CommandContext } from "../../lib/context.ts";
import { layoutOf } from "@agarose/storage/layout/object-layout";
import { EXIT_FAILED, EXIT_OK, failedLine, formatBytes, formatCount, itemLine, logLine } from "../../ui/output.ts";
import { reportWalk, type ReportOptions } from "../../ui/report-stream.ts";
import { walkObjects, type Walk, type WalkOptions } from "@agarose/storage/listing/walk-objects";
import { addEffort, effortOf, NO_EFFORT, type Effort } from "@agarose/storage/maintenance/recode-effort";
import { recodeListed, type RecodeOutcome } from "@agarose/storage/maintenance/recode-listed";

/** What to do, and how. */
export interface RecodeOptions extends WalkOptions, ReportOptions {
  readonly prefix: string;
  readonly dryRun?: boolean;
  /** Bytes per second that a dry run counts with. */
  readonly rate?: number;
}

/** What a walk does beside recoding. */
export interface RecodeWalk {
  /** Says in the cursor file what this walk does. */
  readonly name: string;
  /** As of `RecodeHow`. Default: false. */
  readonly moves?: boolean;
  /** The configuration of a key, where it is not that of the command. */
  readonly configOf?: (key: string) => Config;
  /** Lines after the summary of a run without failures. */
  readonly next?: readonly string[];
}

type Outcome = { readonly key: string } & (
  | { readonly outcome: "current" }
  | { readonly outcome: "completed" | "incomplete"; readonly effort: Effort }
  | { readonly outcome: "recoded" | "due"; readonly from: string; readonly to: string; readonly effort: Effort }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

interface Totals extends Effort {
  readonly objects: number;
  /** Stored again, or with --dry-run to be. */
  readonly recoded: number;
  /** Of those whose manifest was copied. */
  readonly completed?: number;
  readonly failed: number;
}

const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_DRY = 16;
const HOUR_S = 3_600;

/** Walks, prints, and resolves to the exit code: 1 when an object failed. */
export async function recodeObjects(
  { name, moves = false, configOf, next = [] }: RecodeWalk,
  options: RecodeOptions,
  context: CommandContext,
): Promise<number> {
  const { dryRun = false, prefix } = options;
  const { config } = context;
  // Refuses a layout that is unsafe before anything else happens.
  layoutOf(config, prefix, 0);
  const none: Totals = { objects: 0, recoded: 0, ...(moves && { completed: 0 }), failed: 0, ...NO_EFFORT };
  return reportWalk(options, async (report) => {
    const walk: Walk<Outcome, Totals> = {
      name: `${name}${dryRun ? " dry" : ""} ${JSON.stringify(config.code)}`,
      keys: [],
      options,
      objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
      async act(key, group) {
        const own = configOf?.(key);
        const done = await recodeListed(group!, context, { dryRun, moves, ...(own && { config: own }) });
        return done && shownOf(done);
      },
      add,
      onResult: (result) => (result.outcome === "current" ? Promise.resolve() : report.item(result, [lineOf(result)])),
      onWarning: logLine,
    };
    const totals = await walkObjects(walk, none, context);
    // In the document, "objects" are those that are listed.
    const { objects: checked, ...sums } = totals;
    const isDone = totals.failed === 0;
    await report.end({ checked, ...sums }, [...linesOf(totals, options), ...(isDone ? next : [])]);
    return isDone ? EXIT_OK : EXIT_FAILED;
  });
}

/** An outcome as it is reported: with what it takes, or took. */
function shownOf(done: RecodeOutcome): Outcome {
  const { key } = done;
  if (done.outcome === "current" || done.outcome === "failed") return done;
  if ("requests" in done) {
    return { key, outcome: done.outcome, effort: { ...NO_EFFORT, requests: done.requests } };
  }
  const { outcome, before, layout, config } = done;
  return { key, outcome, from: codeText(before), to: codeText(layout), effort: effortOf(before, layout, config) };
}

function add(totals: Totals, result: Outcome): Totals {
  const objects = totals.objects + 1;
  if (result.outcome === "failed") return { ...totals, objects, failed: totals.failed + 1 };
  if (result.outcome === "current") return { ...totals, objects };
  const sums = { ...totals, ...addEffort(totals, result.effort), objects };
  const isRecoded = result.outcome === "recoded" || result.outcome === "due";
  return isRecoded ? { ...sums, recoded: totals.recoded + 1 } : { ...sums, completed: (totals.completed ?? 0) + 1 };
}

function lineOf(result: Exclude<Outcome, { readonly outcome: "current" }>): string {
  const { key, outcome } = result;
  if (outcome === "failed") return failedLine(key, result.error);
  if (!("from" in result))
    return itemLine(outcome, key, `manifests ${outcome === "completed" ? "copied" : "to be copied"}`);
  const { from, to } = result;
  return itemLine(outcome, key, from === to ? `${to}, in other regions or another way` : `${from} to ${to}`);
}

function linesOf(totals: Totals, { dryRun = false, rate }: RecodeOptions): string[] {
  const { objects, recoded, completed, failed, readBytes, writtenBytes, requests, readUsdMax, usdPerMonth } = totals;
  const copies = completed === undefined ? "" : `, ${completed} manifests ${dryRun ? "to be copied" : "copied"}`;
  const what = `${formatCount(objects, "object")}, ${recoded} ${dryRun ? "to be recoded" : "recoded"}${copies}, ${failed} failed`;
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
