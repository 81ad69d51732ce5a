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
import { EXIT_FAILED, EXIT_OK, formatCount, printable } from "../../lib/output.ts";
import { JSON_LINES, ReportStream } from "../../lib/walk/report-stream.ts";
import { CURSOR, walkObjects, type Walk, type WalkOptions } from "../../lib/walk/walk-objects.ts";

type UpgradeOptions = GlobalOptions & WalkOptions;

type Outcome =
  | { readonly key: string; readonly outcome: "upgraded" | "current" }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

type Totals = Readonly<Record<Outcome["outcome"], number>>;

const NONE: Totals = { upgraded: 0, current: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;

export function register(program: Command): void {
  program
    .command("upgrade")
    .description("bring manifests of format 1 to format 2, and sign them; no chunk is moved")
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .option(...CURSOR)
    .option(...JSON_LINES)
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await upgrade(keys, command.optsWithGlobals<UpgradeOptions>());
    });
}

async function upgrade(keys: readonly string[], options: UpgradeOptions): Promise<number> {
  return withContext(options, WRITING, async (command) => {
    const context = { ...command, breaker: new Breaker(systemClock) };
    const report = new ReportStream(options);
    const walk: Walk<Outcome, Totals> = {
      name: "upgrade",
      keys,
      options,
      objectsAtATime: OBJECTS_AT_A_TIME,
      act: (key) => upgradeOne(key, context),
      add: (totals, { outcome }) => ({ ...totals, [outcome]: totals[outcome] + 1 }),
      print: (object) => ({ value: object, lines: object.outcome === "current" ? [] : [lineOf(object)] }),
    };
    try {
      const { upgraded, current, failed } = await walkObjects(walk, NONE, report, context);
      const objects = formatCount(upgraded + current + failed, "object");
      await report.end({}, [`${objects}, ${upgraded} upgraded, ${failed} failed`]);
      return failed === 0 ? EXIT_OK : EXIT_FAILED;
    } catch (error) {
      return report.fail(error);
    }
  });
}

/** Undefined for an object that was removed. */
async function upgradeOne(
  key: string,
  context: CommandContext & { readonly breaker: Breaker },
): Promise<Outcome | undefined> {
  try {
    // Format 1 has no signatures, so the operator of an upgrade vouches for the content.
    const writing = writeContextOf({ ...context, nowMs: Date.now, trust: acceptUnsigned });
    const survey = await surveyRegions(key, writing);
    const { newest } = survey;
    if (newest && isTombstone(newest)) return undefined;
    // Only format 1 has generation 0.
    if (!newest || newest.generation > 0) return { key, outcome: "current" };
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
