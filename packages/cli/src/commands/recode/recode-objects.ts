/**
 * Stores objects again whose code or placement is not what a configuration says, one key after the other: `recode`, and
 * the second step of `migrate`.
 */
import { AgaroseError, toAgaroseError, type Code, type Manifest } from "@agarose/core";
import type { Config } from "@agarose/storage/config/config";
import type { CommandContext } from "../../lib/context.ts";
import { layoutOf, storedLayout } from "@agarose/storage/layout/object-layout";
import type { PutResult } from "@agarose/storage/objects/put-object";
import { EXIT_FAILED, EXIT_OK, formatBytes, formatCount, logLine, printable } from "../../ui/output.ts";
import type { KeyGroup } from "@agarose/storage/listing/key-groups";
import { currentManifest } from "@agarose/storage/listing/listed-object";
import { ReportStream, type ReportOptions } from "../../ui/report-stream.ts";
import { walkObjects, type Walk, type WalkOptions } from "@agarose/storage/listing/walk-objects";
import { addEffort, effortOf, NO_EFFORT, type Effort } from "./estimate.ts";
import { isLaidOut, recodeObject } from "@agarose/storage/maintenance/recode-object";

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
  /**
   * Completes a key that is laid out as it should be, or removed: it has no manifest then. Undefined when there is
   * nothing to do.
   */
  readonly complete?: (
    group: KeyGroup,
    manifest: Manifest | undefined,
    context: Complete,
  ) => Promise<Completion | undefined>;
  /** The configuration of a key, where it is not that of the command. */
  readonly configOf?: (key: string) => Config;
  /** Lines after the summary of a run without failures. */
  readonly next?: readonly string[];
}

/** What `complete` works with. */
export type Complete = CommandContext & { readonly dryRun: boolean };

/** What there was to complete: or, in a dry run, is. */
export interface Completion {
  readonly requests: number;
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
  /** Of those that `complete` was for. */
  readonly completed?: number;
  readonly failed: number;
}

const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_DRY = 16;
const HOUR_S = 3_600;

/** Walks, prints, and resolves to the exit code: 1 when an object failed. */
export async function recodeObjects(
  { name, complete, configOf, next = [] }: RecodeWalk,
  options: RecodeOptions,
  command: CommandContext,
): Promise<number> {
  const { dryRun = false, prefix } = options;
  const { config } = command;
  // Refuses a layout that is unsafe before anything else happens.
  layoutOf(config, prefix, 0);
  const context = { ...command, dryRun };
  const report = new ReportStream(options);
  const completed = async (group: KeyGroup, manifest?: Manifest): Promise<Outcome | undefined> => {
    const { key } = group;
    const done = await complete?.(group, manifest, context);
    if (!done) return { key, outcome: "current" };
    return { key, outcome: dryRun ? "incomplete" : "completed", effort: { ...NO_EFFORT, ...done } };
  };
  const walk: Walk<Outcome, Totals> = {
    name: `${name}${dryRun ? " dry" : ""} ${JSON.stringify(config.code)}`,
    keys: [],
    options,
    objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
    async act(key, group) {
      try {
        const manifest = await currentManifest(group!, context, { isReadOnly: dryRun });
        if (!manifest) return complete && (await completed(group!));
        const own = configOf?.(key) ?? config;
        const layout = storedLayout(manifest, own);
        const isCurrent = await isLaidOut(manifest, layout, own);
        if (isCurrent && (complete || dryRun)) return await completed(group!, manifest);
        const change = { from: codeText(manifest), to: codeText(layout), effort: effortOf(manifest, layout, own) };
        if (dryRun) return { key, outcome: "due", ...change };
        const result = await recodeObject(key, { ...context, config: own });
        if (complete && result) checkWhole(result);
        return result ? { key, outcome: "recoded", ...change } : { key, outcome: "current" };
      } catch (error) {
        context.signal.throwIfAborted();
        return { key, outcome: "failed", error: toAgaroseError(error) };
      }
    },
    add,
    onResult: (result) => (result.outcome === "current" ? Promise.resolve() : report.item(result, [lineOf(result)])),
    onWarning: logLine,
  };
  const none: Totals = { objects: 0, recoded: 0, ...(complete && { completed: 0 }), failed: 0, ...NO_EFFORT };
  try {
    const totals = await walkObjects(walk, none, context);
    // In the document, "objects" are those that are listed.
    const { objects: checked, ...sums } = totals;
    const isDone = totals.failed === 0;
    await report.end({ checked, ...sums }, [...linesOf(totals, options), ...(isDone ? next : [])]);
    return isDone ? EXIT_OK : EXIT_FAILED;
  } catch (error) {
    return report.fail(error);
  }
}

/** Throws STORE_FAILED for an object that some regions have not got: its put has succeeded, a migration has not. */
function checkWhole({ key, regionsWithoutManifest, missing }: PutResult): void {
  const regions = regionsWithoutManifest.map(({ region }) => region);
  if (regions.length === 0 && missing.length === 0) return;
  const message =
    `${JSON.stringify(key)} is stored, but ${formatCount(regions.length, "region")} (${regions.join(", ")}) lack its manifest ` +
    `and ${formatCount(missing.length, "chunk")} are missing: run the command again when all regions answer`;
  throw new AgaroseError("STORE_FAILED", message, { key, regions, chunks: missing });
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
  const key = printable(result.key);
  if (result.outcome === "failed") return `failed   ${key}  ${result.error.code}: ${printable(result.error.message)}`;
  if ("from" in result) {
    const { outcome, from, to } = result;
    return `${outcome.padEnd(7)}  ${key}  ${from === to ? `${to}, in other regions or another way` : `${from} to ${to}`}`;
  }
  return `${result.outcome.padEnd(10)}  ${key}  manifests ${result.outcome === "completed" ? "copied" : "to be copied"}`;
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
