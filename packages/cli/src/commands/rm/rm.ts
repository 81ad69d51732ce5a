/** `agarose rm`: removes objects. A tombstone replaces each manifest, so that no region brings it back. */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { confirm, sampleOf, type Danger } from "../../ui/confirm.ts";
import { withContext, WRITING, type CommandContext } from "../../lib/context.ts";
import { findRestorable, restoreVersion } from "@agarose/storage/history/restore-object";
import { listKeys, removableKeys } from "@agarose/storage/listing/keys";
import { Batches, withBatches } from "@agarose/storage/upload/batches-of-keys";
import { isRemovable, type RemoveResult } from "@agarose/storage/objects/remove-object";
import { removeOverOrigin } from "@agarose/storage/origin/read-through";
import {
  EXIT_FAILED,
  EXIT_OK,
  failedLine,
  formatCount,
  itemLine,
  logLine,
  printable,
  warnOfLacks,
} from "../../ui/output.ts";
import { printResults } from "../../ui/report-stream.ts";
import { purgePops, warnOfUnpurged } from "../../lib/purge-pops.ts";
import { mapOrdered, allOf } from "@agarose/storage/listing/adaptive-pool";
import { dueOf, reportOf, restoredLine, type RestoreDue, type RestoreReport } from "../restore/restore.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

type Options = Values<typeof args>;

type Failed = { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };
type Due = { readonly key: string; readonly outcome: "due" };
type RmReport = (RemoveResult & { readonly outcome: "removed" }) | Due | Failed;

const OBJECTS_AT_A_TIME = 4;

/** Runs `agarose rm KEY…`. The command exits with 1 when a key has no object, or when too few regions answer. */
export async function rm({ keys: names, ...options }: Options): Promise<number> {
  if (options.undelete) return undelete(names, options);
  checkNames(names, options);
  const { all = false, dryRun = false } = options;
  const isMany = options.recursive === true || all;
  if (!isMany) names.forEach(parseKey);
  return withContext(options, WRITING, async (context) => {
    const keys = isMany ? await keysBelow(all ? [""] : names, context) : names;
    if (isMany && keys.length > 0) await confirm(dangerOf(keys, names, all), options, context.signal);
    const { etags } = await listKeys(dryRun ? [] : keys, context);
    const listed = [...etags].map(([key, etag]) => ({ key, etag }));
    const found = await withBatches(listed, context, (batches, parts) => {
      const act = (key: string): Promise<RmReport | undefined> => removeOne(key, dryRun, batches, parts);
      return allOf(mapOrdered(keys, options.jobs ?? OBJECTS_AT_A_TIME, act));
    });
    const reports = found.flatMap((report) => report ?? []);
    if (!isMany) refuseUnknown(keys[found.indexOf(undefined)]);
    const only = reports.length === 1 ? reports[0] : undefined;
    if (only?.outcome === "failed") throw only.error;
    const removed = reports.flatMap(({ key, outcome }) => (outcome === "removed" ? [key] : []));
    const pops = options.purge ? await purgePops(context.config, removed) : [];
    const summary = { ...(dryRun && { dryRun }), ...(pops.length > 0 && { pops }) };
    await printResults(options, reports, summary, reports.map(lineOf));
    warnOfUnpurged(pops);
    return reports.map(warn).includes(false) ? EXIT_FAILED : EXIT_OK;
  });
}

/** Throws USAGE where what is to be removed is not said, or is everything and not said to be. */
function checkNames(
  names: readonly string[],
  { recursive = false, all = false }: Pick<Options, "recursive" | "all">,
): void {
  const usage = (message: string): AgaroseError => new AgaroseError("USAGE", message);
  if (all && names.length > 0) throw usage("--all removes every object: give it without keys, or leave it out");
  if (!all && names.length === 0) throw usage("give the keys of the objects to remove, or --all for every object");
  if (recursive && !all && names.includes("")) {
    throw usage("an empty prefix begins every key, so every object would be removed: write --all if you mean that");
  }
}

function dangerOf(keys: readonly string[], prefixes: readonly string[], isTotal: boolean): Danger {
  const where = isTotal ? "every object of the deployment" : `the keys that begin with ${sampleOf(prefixes)}`;
  return {
    summary: [`This removes ${where}: ${formatCount(keys.length, "object")}, such as ${sampleOf(keys)}.`],
    question: `Remove ${formatCount(keys.length, "object")}?`,
    isTotal,
  };
}

/** Brings removed objects back. A failure does not keep the others from it. */
async function undelete(names: readonly string[], options: Omit<Options, "keys">): Promise<number> {
  if (options.recursive || options.all) {
    throw new AgaroseError("USAGE", "--undelete takes keys: leave --recursive and --all out");
  }
  checkNames(names, options);
  const keys = [...new Set(names.map(parseKey))];
  return withContext(options, WRITING, async (context) => {
    const { etags } = await listKeys(keys, context);
    const reports = await withBatches([], context, (_batches, parts) => {
      const restoreKey = async (key: string): Promise<RestoreReport | RestoreDue | Failed> => {
        try {
          const found = await findRestorable(key, { isRemoved: true, etag: etags.get(key) }, context);
          return options.dryRun ? dueOf(found) : reportOf(found, await restoreVersion(found, parts));
        } catch (error) {
          if (keys.length === 1 || context.signal.aborted) throw error;
          return { key, outcome: "failed", error: toAgaroseError(error) };
        }
      };
      return allOf(mapOrdered(keys, options.jobs ?? OBJECTS_AT_A_TIME, restoreKey));
    });
    const lineOfRestored = (report: (typeof reports)[number]): string =>
      report.outcome === "failed" ? failedLine(report.key, report.error) : restoredLine(report);
    await printResults(options, reports, options.dryRun ? { dryRun: true } : {}, reports.map(lineOfRestored));
    for (const report of reports) {
      if (report.outcome !== "failed" && report.outcome !== "due") warnOfLacks(report);
    }
    return reports.some(({ outcome }) => outcome === "failed") ? EXIT_FAILED : EXIT_OK;
  });
}

async function keysBelow(prefixes: readonly string[], context: CommandContext): Promise<string[]> {
  const found = await Promise.all(prefixes.map((prefix) => removableKeys(prefix, context, logLine)));
  return [...new Set(found.flat())];
}

/** Removes one object, or says that there is one. A failure does not keep the others from being removed. */
async function removeOne(
  key: string,
  dryRun: boolean,
  batches: Batches,
  context: CommandContext,
): Promise<RmReport | undefined> {
  try {
    if (dryRun) return (await isRemovable(key, context)) ? { key, outcome: "due" } : undefined;
    const result = await batches.write(key, (claim) => removeOverOrigin(key, context, { claim }));
    return result && { ...result, outcome: "removed" };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function lineOf(report: RmReport): string {
  if (report.outcome === "failed") return failedLine(report.key, report.error);
  if (report.outcome === "due") return itemLine("would be removed", report.key);
  return itemLine("removed", report.key, formatCount(report.chunksRemoved, "chunk"));
}

/** Says on stderr what is left, and returns whether nothing is. */
function warn(report: RmReport): boolean {
  if (report.outcome === "failed") return false;
  if (report.outcome === "due") return true;
  for (const { region, name, problem } of report.leftovers) {
    logLine(`left     ${region} ${printable(name)}: ${printable(problem)}`);
  }
  for (const { region, problem } of report.regionsWithoutTombstone) {
    logLine(
      `left     ${region} still has ${printable(report.key)}: ${printable(problem)}; \`agarose repair\` removes it`,
    );
  }
  return report.leftovers.length + report.regionsWithoutTombstone.length === 0;
}

function refuseUnknown(key: string | undefined): void {
  if (key === undefined) return;
  const message = `no region has an object ${JSON.stringify(key)}: check the key with \`agarose ls\``;
  throw new AgaroseError("OBJECT_NOT_FOUND", message, { key });
}
