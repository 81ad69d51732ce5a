/**
 * `agarose migrate`: from the regions, providers and code of one configuration to those of another, in three steps, so
 * that readers never meet a region that they do not know.
 *
 * 1. Both are in the configuration, for PoPs and pages to know; the regions that go are being emptied.
 * 2. `--move` stores objects where the next configuration wants them, and copies manifests into the new regions.
 * 3. `--finish` omits the regions that are empty.
 */
import { dirname, resolve } from "node:path";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { regionsByName } from "@agarose/storage/buckets/region-names";
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { checkFinished, checkSettled } from "@agarose/storage/maintenance/migrate/finished";
import { renameControl } from "@agarose/storage/maintenance/rename";
import { transitionOf, type ConfigFile, type Transition } from "@agarose/storage/maintenance/migrate/transition";
import { PopClient } from "@agarose/storage/pops/pop-client";
import { confirm } from "../../ui/confirm.ts";
import { configPath } from "../../lib/config-path.ts";
import { READING, withConfig, WRITING } from "../../lib/context.ts";
import { readFields, writeFields } from "../../lib/files/config-fields.ts";
import { EXIT_OK, logLine, printResult } from "../../ui/output.ts";
import { checkRate } from "../recode/recode.ts";
import { reportRecode, type RecodeReportOptions } from "../recode/recode-report.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

const PUBLISH = "then: `agarose init` and deploy the app, `agarose deploy`, and wait until clients have the new file;";

/** Runs `agarose migrate NEXT`. The command exits with 1 when an object could not be moved. */
export async function migrate({ next: nextPath, ...options }: Values<typeof args>): Promise<number> {
  const { move = false, finish = false, dryRun = false } = options;
  checkRate(options);
  if (move && finish) throw new AgaroseError("USAGE", "give --move or --finish, not both");
  const path = configPath(options.config);
  if (dirname(resolve(path)) !== dirname(resolve(nextPath))) {
    throw new AgaroseError("USAGE", `${nextPath} is in another folder than ${path}: put it beside, for what both name`);
  }
  const [current, next] = [await readConfigFile(path), await readConfigFile(nextPath)];
  const transition = transitionOf(current, next);
  const { added, left, renamed, fields, hasBegun } = transition;
  const what = { added, left, ...(renamed && { renamed }) };
  if (!move && !finish) {
    if (dryRun) return walk(transition, next, options);
    if (!hasBegun) await withConfig(current.config, options, READING, checkSettled);
    await writeFields(path, fields);
    printResult(options, { step: 1, ...what }, [
      `1 of 3: ${path} has the regions of both${listed("new", added)}${listed("being emptied", left)}${listed("renamed", renamed ? [`${renamed.from} to ${renamed.to}`] : [])}`,
      PUBLISH,
      `then: agarose migrate ${nextPath} --move`,
    ]);
    return EXIT_OK;
  }
  if (!hasBegun) {
    throw new AgaroseError("USAGE", `${path} is not on its way to ${nextPath}: begin with agarose migrate ${nextPath}`);
  }
  if (move) {
    if (!dryRun) await checkDeployed(current.config);
    return walk(transition, next, options);
  }
  await withConfig(current.config, options, WRITING, async (context) => {
    await checkFinished(left, context);
    const summary = [`This leaves ${left.length === 0 ? "no region" : left.join(", ")} out of ${path} for good.`];
    if (left.length > 0) await confirm({ summary, question: "Leave them out?" }, options, context.signal);
    // The bucket is known by its new name alone from now on.
    if (renamed && !dryRun) await renameControl(context);
  });
  if (dryRun) {
    const line = `3 of 3 can be done: ${path} would become equal to ${nextPath}${listed("left out", left)}`;
    printResult(options, { step: 3, dryRun, ...what }, [line]);
    return EXIT_OK;
  }
  await writeFields(path, next.fields);
  printResult(options, { step: 3, ...what }, [
    `3 of 3: ${path} is equal to ${nextPath}`,
    PUBLISH,
    ...(left.length === 0 ? [] : [`then delete the buckets of ${left.join(", ")}`]),
  ]);
  return EXIT_OK;
}

/** Moves the objects, or counts what that takes. */
function walk(
  { config }: Transition,
  { path, config: next }: ConfigFile,
  options: Omit<Values<typeof args>, "next">,
): Promise<number> {
  const moving: RecodeReportOptions = {
    ...options,
    name: `migrate ${next.regions.map(({ name }) => name).join()}`,
    moves: true,
    next: options.dryRun
      ? []
      : [
          "2 of 3: every object is where the next configuration wants it",
          "then: `agarose gc --delete`, once the old chunks are old enough;",
          `then: agarose migrate ${path} --finish`,
        ],
  };
  return withConfig(config, options, WRITING, (context) => reportRecode(moving, context));
}

async function readConfigFile(path: string): Promise<ConfigFile> {
  const config = await loadConfig(path);
  const fields = (await readFields(path))!;
  if (Array.isArray(fields["regions"])) return { path, config, fields };
  throw new AgaroseError("USAGE", `${path} names another file: give the configuration itself`, { path });
}

function listed(what: string, names: readonly string[]): string {
  return names.length === 0 ? "" : `; ${what}: ${names.join(", ")}`;
}

/**
 * Throws USAGE where a PoP answers without one of the regions: its readers would miss the chunks there. A PoP that
 * cannot be asked is a warning.
 */
async function checkDeployed({ pops, regions }: Pick<Config, "pops" | "regions">): Promise<void> {
  const found = await Promise.all(pops.map(async (pop) => ({ pop: pop.name, known: await knownRegions(pop) })));
  for (const { pop, known } of found) {
    if (typeof known === "string") {
      logLine(`warning: whether ${pop} knows the regions is not known: ${known}`);
      continue;
    }
    const missing = regionsByName(regions).flatMap(({ name }) => (known.includes(name) ? [] : [name]));
    if (missing.length === 0) continue;
    throw new AgaroseError(
      "USAGE",
      `PoP ${pop} knows ${known.length} regions, and not ${missing.join(", ")}: deploy it, wait for its next period, and ` +
        "run --move again",
      { pop, missing },
    );
  }
}

/** The regions that a PoP has measured, or why it cannot be asked. */
async function knownRegions(pop: Config["pops"][number]): Promise<readonly string[] | string> {
  try {
    return (await new PopClient(pop).status()).answer.regions.map(({ name }) => name);
  } catch (error) {
    return toAgaroseError(error, "SOURCE_FAILED").message;
  }
}
