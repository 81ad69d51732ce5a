/**
 * `agarose repair`: verifies objects and makes damaged ones whole again.
 */
import type { Command } from "commander";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, printResult } from "../../lib/output.ts";
import { mapPool } from "../../lib/pool.ts";
import { repairObject, type RepairReport } from "./repair-object.ts";
import { linesOf, namedKeys, refuseUnknown } from "../verify/index.ts";

interface RepairOptions extends GlobalOptions {
  readonly prefix?: string;
}

type Outcome = { readonly key: string } & (
  | ({ readonly outcome: "sound" | "repaired" | "damaged" } & RepairReport)
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

export function register(program: Command): void {
  program
    .command("repair")
    .description("verify objects and write what is missing or damaged anew; exit 1 when something stays damaged")
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await repair(keys, command.optsWithGlobals<RepairOptions>());
    });
}

async function repair(keys: readonly string[], options: RepairOptions): Promise<number> {
  return withContext(options, WRITING, async (context) => {
    const names = await namedKeys(keys, options.prefix, context);
    // One at a time: each may take the length of the object on disk.
    const objects = await mapPool(names, 1, (key) => repairOne(key, context));
    if (keys.length > 0)
      refuseUnknown(objects.flatMap((object) => (object.outcome === "failed" ? [] : [object.before])));
    printResult(context.json, { objects }, objects.flatMap(linesOfOutcome));
    return objects.every(({ outcome }) => outcome === "sound" || outcome === "repaired") ? EXIT_OK : EXIT_FAILED;
  });
}

async function repairOne(key: string, context: CommandContext): Promise<Outcome> {
  try {
    const report = await repairObject(key, context);
    const outcome = report.before.sound ? "sound" : report.after.sound ? "repaired" : "damaged";
    return { key, outcome, ...report };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function linesOfOutcome(object: Outcome): string[] {
  if (object.outcome === "failed") return [`failed    ${object.key}  ${object.error.code}: ${object.error.message}`];
  if (object.outcome === "damaged") return linesOf(object.after);
  const { key, outcome, chunksWritten, manifestsWritten } = object;
  return [`${outcome.padEnd(8)}  ${key}  ${chunksWritten} chunks and ${manifestsWritten} manifests written`];
}
