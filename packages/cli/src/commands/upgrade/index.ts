/**
 * `agarose upgrade`: brings the manifests of objects from format 1 to format 2. Their chunks stay where they are.
 */
import type { Command } from "commander";
import { acceptUnsigned, isTombstone, systemClock, toAgaroseError, type AgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { commitAgain } from "../../lib/objects/commit/commit.ts";
import { surveyRegions } from "../../lib/objects/commit/region-survey.ts";
import { writeContextOf } from "../../lib/objects/commit/write-context.ts";
import { selectKeys } from "../../lib/objects/keys.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, printable, printResult } from "../../lib/output.ts";
import { mapPool } from "../../lib/pool.ts";

interface UpgradeOptions extends GlobalOptions {
  readonly prefix?: string;
}

type Outcome =
  | { readonly key: string; readonly outcome: "upgraded" | "current" }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

const OBJECTS_AT_A_TIME = 4;

export function register(program: Command): void {
  program
    .command("upgrade")
    .description("bring manifests of format 1 to format 2, and sign them; no chunk is moved")
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await upgrade(keys, command.optsWithGlobals<UpgradeOptions>());
    });
}

async function upgrade(keys: readonly string[], options: UpgradeOptions): Promise<number> {
  return withContext(options, WRITING, async (context) => {
    const names = await selectKeys(keys, options.prefix, context);
    const breaker = new Breaker(systemClock);
    const objects = await mapPool(names, OBJECTS_AT_A_TIME, (key) => upgradeOne(key, context, breaker));
    const count = (wanted: Outcome["outcome"]): number => objects.filter(({ outcome }) => outcome === wanted).length;
    printResult(context.json, { objects }, [
      ...objects.filter(({ outcome }) => outcome !== "current").map(lineOf),
      `${formatCount(objects.length, "object")}, ${count("upgraded")} upgraded, ${count("failed")} failed`,
    ]);
    return count("failed") === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

async function upgradeOne(key: string, context: CommandContext, breaker: Breaker): Promise<Outcome> {
  try {
    // Format 1 has no signatures, so the operator of an upgrade vouches for the content.
    const writing = writeContextOf({ ...context, breaker, nowMs: Date.now, trust: acceptUnsigned });
    const survey = await surveyRegions(key, writing);
    const { newest } = survey;
    // Only format 1 has generation 0.
    if (!newest || isTombstone(newest) || newest.generation > 0) return { key, outcome: "current" };
    await commitAgain(newest, survey, writing);
    return { key, outcome: "upgraded" };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

function lineOf(object: Outcome): string {
  const key = printable(object.key);
  if (object.outcome !== "failed") return `${object.outcome}  ${key}`;
  return `failed    ${key}  ${object.error.code}: ${printable(object.error.message)}`;
}
