/**
 * `agarose upgrade`: brings the manifests of objects from format 1 to format 2. Their chunks stay where they are.
 */
import type { Command } from "commander";
import { acceptUnsigned, AgaroseError, isTombstone, systemClock, toAgaroseError, type Manifest } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { Breaker } from "../../lib/objects/commit/ask-regions.ts";
import { commitAgain } from "../../lib/objects/commit/commit.ts";
import { surveyRegions, type Survey } from "../../lib/objects/commit/region-survey.ts";
import { majorityOf, writeContextOf } from "../../lib/objects/commit/write-context.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, printable } from "../../lib/output.ts";
import { JSON_LINES, ReportStream } from "../../lib/walk/report-stream.ts";
import { CURSOR, walkObjects, type Walk, type WalkOptions } from "../../lib/walk/walk-objects.ts";

type UpgradeOptions = GlobalOptions & WalkOptions & { readonly acceptNewest?: boolean };

type Outcome =
  | { readonly key: string; readonly outcome: "upgraded" | "current" }
  | { readonly key: string; readonly outcome: "failed"; readonly error: AgaroseError };

type Totals = Readonly<Record<Outcome["outcome"], number>>;

const NONE: Totals = { upgraded: 0, current: 0, failed: 0 };
const OBJECTS_AT_A_TIME = 4;

export function register(program: Command): void {
  program
    .command("upgrade")
    .description(
      "bring manifests of format 1 to format 2, and sign them; no chunk is moved; refuses objects whose regions differ",
    )
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .option("--accept-newest", "where regions hold different manifests, take the newest")
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
      act: (key) => upgradeOne(key, options.acceptNewest ?? false, context),
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
  acceptsNewest: boolean,
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
    if (!acceptsNewest) refuseDispute(newest, survey);
    await commitAgain(newest, survey, writing);
    return { key, outcome: "upgraded" };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

/**
 * An upgrade signs what no one has signed before. One bucket alone must not decide what that is, so all regions that
 * hold a manifest must hold the same, and they must be a majority.
 */
function refuseDispute(newest: Manifest, { regions }: Survey): void {
  // By content, because format 1 was written in more than one way.
  const text = JSON.stringify(newest);
  const same = regions.filter(({ record }) => JSON.stringify(record) === text);
  const dissent = regions.filter((region) => region.bytes !== undefined && !same.includes(region));
  if (dissent.length === 0 && same.length >= majorityOf(regions)) return;
  const names = (of: Survey["regions"]): string[] => of.map(({ store }) => store.region.name);
  throw new AgaroseError(
    "MANIFEST_UNTRUSTED",
    `${same.length} of ${regions.length} regions hold version ${newest.version} of ${JSON.stringify(newest.key)}, the ` +
      `newest, and ${dissent.length} hold something else (${names(dissent).join(", ")}): check the content with ` +
      "`agarose get`, then put it again or upgrade it with --accept-newest",
    { key: newest.key, version: newest.version, same: names(same), others: names(dissent) },
  );
}

function lineOf(object: Outcome): string {
  const key = printable(object.key);
  if (object.outcome !== "failed") return `${object.outcome}  ${key}`;
  return `failed    ${key}  ${object.error.code}: ${printable(object.error.message)}`;
}
