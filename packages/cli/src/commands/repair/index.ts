/**
 * `agarose repair`: verifies objects and rewrites what is missing or damaged.
 */
import type { Command } from "commander";
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, printable, printResult } from "../../lib/output.ts";
import { selectKeys } from "../../lib/objects/keys.ts";
import { refuseUnknown, unreachableLines, verdictLines } from "../../lib/objects/verdicts.ts";
import { mapPool } from "../../lib/pool.ts";
import { repairObject, type RepairReport } from "./repair-object.ts";

interface RepairOptions extends GlobalOptions {
  readonly prefix?: string;
  readonly quick?: boolean;
}

type Outcome = { readonly key: string } & (
  | ({ readonly outcome: "sound" | "repaired" | "damaged" } & RepairReport)
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

export function register(program: Command): void {
  program
    .command("repair")
    .description(
      "find and rewrite what is missing or damaged, by at most k + 2 reads of chunks; exit 1 when something stays damaged",
    )
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .option("--quick", "find damage by what the regions list, without reading chunks of sound objects")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await repair(keys, command.optsWithGlobals<RepairOptions>());
    });
}

async function repair(keys: readonly string[], options: RepairOptions): Promise<number> {
  return withContext(options, WRITING, async (context) => {
    const names = await selectKeys(keys, options.prefix, context, { removed: true });
    // One at a time: each encodes and uploads with all there is.
    const objects = await mapPool(names, 1, (key) => repairOne(key, options.quick ?? false, context));
    const reports = objects.flatMap((object) => (object.outcome === "failed" ? [] : [object]));
    if (keys.length > 0) refuseUnknown(reports.map(({ before }) => before));
    const totals = totalsOf(objects);
    printResult(context.json, { objects, ...totals }, [
      ...objects.flatMap(linesOf),
      ...unreachableLines(reports.map(({ after }) => after)),
      `${formatCount(objects.length, "object")}, ${totals.repaired} repaired, ${totals.damaged} still damaged, ${totals.failed} failed`,
    ]);
    return totals.damaged + totals.failed === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

async function repairOne(key: string, quick: boolean, context: CommandContext): Promise<Outcome> {
  try {
    const report = await repairObject(key, { ...context, quick, nowMs: Date.now });
    const outcome = report.before.sound ? "sound" : report.after.sound ? "repaired" : "damaged";
    return { key, outcome, ...report };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function totalsOf(objects: readonly Outcome[]): { sound: number; repaired: number; damaged: number; failed: number } {
  const count = (wanted: Outcome["outcome"]): number => objects.filter(({ outcome }) => outcome === wanted).length;
  return { sound: count("sound"), repaired: count("repaired"), damaged: count("damaged"), failed: count("failed") };
}

function linesOf(object: Outcome): string[] {
  const key = printable(object.key);
  if (object.outcome === "failed")
    return [`failed    ${key}  ${object.error.code}: ${printable(object.error.message)}`];
  if (object.outcome === "damaged") return verdictLines(object.after);
  const { outcome, chunksWritten, manifestsWritten } = object;
  const written = `${formatCount(chunksWritten, "chunk")} and ${formatCount(manifestsWritten, "manifest")} written`;
  return [`${outcome.padEnd(8)}  ${key}  ${outcome === "sound" ? "nothing to repair" : written}`];
}
