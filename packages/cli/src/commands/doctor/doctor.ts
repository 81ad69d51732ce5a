/** `agarose doctor`: checks the configuration against the world. */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AgaroseError } from "@agarose/core";
import { loadConfig } from "@agarose/storage/config/config";
import { isFailed, type Check } from "@agarose/storage/doctor/check";
import { checkDeployed } from "@agarose/storage/doctor/check-deployed";
import { checkDeployment } from "@agarose/storage/doctor/check-deployment";
import type { Fix } from "@agarose/storage/doctor/fix";
import { configPath } from "../../lib/config-path.ts";
import { withContext, WRITING } from "../../lib/context.ts";
import { EXIT_FAILED, EXIT_OK, formatCount } from "../../ui/output.ts";
import { printResults, type ReportOptions } from "../../ui/report-stream.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

const WRANGLER_FILES = ["wrangler.jsonc", "wrangler.json", "wrangler.toml"];
/** Any list that is not empty, in JSON or TOML, as a text or as a list. */
const PRIVATE_PREFIXES = /^[ \t]*["']?PRIVATE_PREFIXES["']?\s*[=:][^\n[]*\[\s*\\?["']/m;
const MARKS = { ok: "ok  ", warn: "WARN", fail: "FAIL" } as const;

/** Runs `agarose doctor`. The command exits with 1 when a check fails, and with 0 when there are warnings alone. */
export async function doctor(options: Values<typeof args>): Promise<number> {
  if (options.dryRun && !options.fix) throw new AgaroseError("USAGE", "--dry-run needs --fix");
  if (options.deployed && options.fix) {
    throw new AgaroseError("USAGE", "--fix is for buckets: run it without --deployed");
  }
  const path = configPath(options.config);
  if (options.deployed) {
    const config = await loadConfig(path);
    return report({ checks: await checkDeployed(config, { fetch, nowMs: Date.now }) }, options);
  }
  return withContext(options, { ...WRITING, attempts: 1 }, async (context) => {
    const { origin, uploads, fix, dryRun = false } = options;
    const how = fix ? { dryRun, guardedBy: await guardingFile(dirname(path)) } : undefined;
    return report(await checkDeployment(context, { origin, uploads, fix: how }), options);
  });
}

/** The Worker's configuration beside the command line's that keeps prefixes private, if one does. */
async function guardingFile(folder: string): Promise<string | undefined> {
  for (const name of WRANGLER_FILES) {
    const text = await readFile(join(folder, name), "utf8").catch(() => "");
    if (PRIVATE_PREFIXES.test(text)) return name;
  }
  return undefined;
}

async function report(
  { checks, fixes }: { checks: readonly Check[]; fixes?: readonly Fix[] },
  options: ReportOptions & Pick<Values<typeof args>, "verbose">,
): Promise<number> {
  const failed = checks.filter(isFailed).length;
  const mendable = fixes ? 0 : checks.filter(({ remedy }) => remedy !== undefined).length;
  const lines = [
    ...(fixes ?? []).map(
      ({ subject, remedy, outcome, message }) => `${outcome.padEnd(7)}  ${subject}: ${remedy}: ${message}`,
    ),
    ...(options.verbose ? checks.map(lineOf) : briefLines(checks)),
    `${checks.length} checks, ${failed} failed`,
    ...(mendable > 0 ? [`\`agarose doctor --fix\` can fix ${formatCount(mendable, "finding")}`] : []),
  ];
  await printResults(options, checks, { ok: failed === 0, ...(fixes && { fixes }) }, lines, "checks");
  return failed === 0 ? EXIT_OK : EXIT_FAILED;
}

function lineOf({ subject, name, state, message }: Check): string {
  return `${MARKS[state]}  ${subject}: ${name}: ${message}`;
}

/**
 * One line for all regions, or PoPs, that pass the same checks, and a line for each other check. Subjects with one or
 * two checks are about the whole deployment, and their messages count.
 */
function briefLines(checks: readonly Check[]): string[] {
  const unlike: Check[] = [];
  const alike = new Map<string, string[]>();
  for (const [subject, own] of Map.groupBy(checks, (check) => check.subject)) {
    const passed = own.filter(({ state }) => state === "ok");
    const isPlace = own.length > 2 || own.some(({ name }) => name === "health");
    if (!isPlace) {
      unlike.push(...own);
      continue;
    }
    unlike.push(...own.filter(({ state }) => state !== "ok"));
    const names = passed.map(({ name }) => name).join(", ");
    if (passed.length > 0) alike.set(names, [...(alike.get(names) ?? []), subject]);
  }
  const summaries = [...alike].map(([names, subjects]) => `${MARKS.ok}  ${subjects.join(", ")}: ${names}`);
  return [...linesOfEqual(unlike), ...summaries];
}

/** A line for each check, and one for those that differ only in the name of their region. */
function linesOfEqual(checks: readonly Check[]): string[] {
  const general = ({ subject, message }: Check): string => message.replaceAll(`region ${subject}`, "the region");
  const groups = Map.groupBy(checks, (check) => `${check.state} ${check.name} ${general(check)}`);
  return [...groups.values()].map(([first, ...others]) => {
    if (others.length === 0) return lineOf(first!);
    const subject = [first!, ...others].map((check) => check.subject).join(", ");
    return lineOf({ ...first!, subject, message: general(first!) });
  });
}
