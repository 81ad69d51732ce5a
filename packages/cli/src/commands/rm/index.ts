/**
 * `agarose rm`: removes objects. A tombstone takes the place of each manifest, so that no region brings it back.
 */
import type { Command } from "commander";
import { AgaroseError, parseKey, systemClock, toAgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { findRestorable, restoreVersion } from "../../lib/objects/history/restore-object.ts";
import { removableKeys } from "../../lib/objects/keys.ts";
import { removeObject, type RemoveResult } from "../../lib/objects/remove-object.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine, printable, printResult } from "../../lib/output.ts";
import { purgePops, warnOfUnpurged } from "../../lib/purge-pops.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";
import { reportOf, restoredLine, warnOfRestored, type RestoreReport } from "../restore/restore-report.ts";

interface RmOptions extends GlobalOptions {
  readonly prefix?: boolean;
  readonly undelete?: boolean;
  readonly purge: boolean;
}

type Failed = { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };
type RmReport = (RemoveResult & { readonly outcome: "removed" }) | Failed;

const OBJECTS_AT_A_TIME = 4;

/** Adds `agarose rm KEY…`. The command exits with 1 when a key has no object, or when too few regions answer. */
export function register(program: Command): void {
  program
    .command("rm")
    .description("remove objects; `gc` removes what their older versions left")
    .argument("<key...>", "keys of the objects")
    .option("--undelete", "bring back what was removed, as long as `keep` keeps it")
    .option("--prefix", "take each key as a prefix and remove every object whose key begins with it")
    .option("--no-purge", "leave the PoPs of the configuration as they are")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      const options = command.optsWithGlobals<RmOptions>();
      process.exitCode = options.undelete ? await undelete(keys, options) : await rm(keys, options);
    });
}

async function rm(names: readonly string[], options: RmOptions): Promise<number> {
  if (!options.prefix) names.forEach(parseKey);
  return withContext(options, WRITING, async (context) => {
    const keys = options.prefix ? await keysBelow(names, context) : names;
    const breaker = new Breaker(systemClock);
    const found: (RmReport | undefined)[] = [];
    const removing = mapOrdered(keys, OBJECTS_AT_A_TIME, (key) => removeOne(key, context, breaker));
    for await (const report of removing) found.push(report);
    const reports = found.flatMap((report) => report ?? []);
    if (!options.prefix) refuseUnknown(keys[found.indexOf(undefined)]);
    const only = reports.length === 1 ? reports[0] : undefined;
    if (only?.outcome === "failed") throw only.error;
    const removed = reports.flatMap(({ key, outcome }) => (outcome === "removed" ? [key] : []));
    const pops = options.purge ? await purgePops(context.config, removed) : [];
    printResult(context.json, { objects: reports, ...(pops.length > 0 && { pops }) }, reports.map(lineOf));
    warnOfUnpurged(pops);
    return reports.map(warn).includes(false) ? EXIT_FAILED : EXIT_OK;
  });
}

/** Brings removed objects back, one after the other: each is read and stored with all there is. */
async function undelete(keys: readonly string[], options: RmOptions): Promise<number> {
  if (options.prefix) throw new AgaroseError("USAGE", "--undelete takes keys: leave --prefix out");
  keys.forEach(parseKey);
  return withContext(options, WRITING, async (command) => {
    const context = { ...command, nowMs: Date.now, breaker: new Breaker(systemClock) };
    const reports: (RestoreReport | Failed)[] = [];
    for (const key of keys) {
      try {
        const found = await findRestorable(key, { isRemoved: true }, context);
        reports.push(reportOf(found, await restoreVersion(found, context)));
      } catch (error) {
        if (keys.length === 1 || context.signal.aborted) throw error;
        reports.push({ key, outcome: "failed", error: toAgaroseError(error) });
      }
    }
    const isFailed = (report: RestoreReport | Failed): report is Failed => report.outcome === "failed";
    printResult(
      context.json,
      { objects: reports },
      reports.map((report) => (isFailed(report) ? failedLine(report) : restoredLine(report))),
    );
    for (const report of reports) if (!isFailed(report)) warnOfRestored(report);
    return reports.some(isFailed) ? EXIT_FAILED : EXIT_OK;
  });
}

function failedLine({ key, error }: Failed): string {
  return `failed   ${printable(key)}  ${error.code}: ${printable(error.message)}`;
}

async function keysBelow(prefixes: readonly string[], context: CommandContext): Promise<string[]> {
  const found = await Promise.all(prefixes.map((prefix) => removableKeys(prefix, context)));
  return [...new Set(found.flat())];
}

/** Removes one object. A failure is reported and does not keep the others from being removed. */
async function removeOne(key: string, context: CommandContext, breaker: Breaker): Promise<RmReport | undefined> {
  try {
    const result = await removeObject(key, { ...context, breaker, nowMs: Date.now });
    return result && { ...result, outcome: "removed" };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function lineOf(report: RmReport): string {
  if (report.outcome === "failed") return failedLine(report);
  return `removed  ${printable(report.key)}  ${formatCount(report.chunksRemoved, "chunk")}`;
}

/** Says on stderr what is left, and returns whether nothing is. */
function warn(report: RmReport): boolean {
  if (report.outcome === "failed") return false;
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
  const message = `no region holds anything of ${JSON.stringify(key)}: check it with \`agarose ls\``;
  throw new AgaroseError("OBJECT_NOT_FOUND", message, { key });
}
