/**
 * `agarose rm`: removes objects. A tombstone takes the place of each manifest, so that no region brings it back.
 */
import type { Command } from "commander";
import { AgaroseError, parseKey, systemClock, toAgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { liveKeys } from "../../lib/objects/keys.ts";
import { removeObject, type RemoveResult } from "../../lib/objects/remove-object.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine, printable, printResult } from "../../lib/output.ts";
import { mapOrdered } from "../../lib/walk/ordered-pool.ts";

interface RmOptions extends GlobalOptions {
  readonly prefix?: boolean;
}

type RmReport =
  | (RemoveResult & { readonly outcome: "removed" })
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

const OBJECTS_AT_A_TIME = 4;

/** Adds `agarose rm KEY…`. The command exits with 1 when a key has no object, or when too few regions answer. */
export function register(program: Command): void {
  program
    .command("rm")
    .description("remove objects; `gc` removes what their older versions left")
    .argument("<key...>", "keys of the objects")
    .option("--prefix", "take each key as a prefix and remove every object whose key begins with it")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await rm(keys, command.optsWithGlobals<RmOptions>());
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
    printResult(context.json, { objects: reports }, reports.map(lineOf));
    return reports.map(warn).includes(false) ? EXIT_FAILED : EXIT_OK;
  });
}

async function keysBelow(prefixes: readonly string[], context: CommandContext): Promise<string[]> {
  const found = await Promise.all(prefixes.map((prefix) => liveKeys(prefix, context)));
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
  const key = printable(report.key);
  if (report.outcome === "failed") return `failed   ${key}  ${report.error.code}: ${printable(report.error.message)}`;
  return `removed  ${key}  ${formatCount(report.chunksRemoved, "chunk")}`;
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
