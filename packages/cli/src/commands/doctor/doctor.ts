/**
 * `agarose doctor`: checks the configuration against the world.
 */
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import { withContext, WRITING, type CommandContext } from "../../lib/context.ts";
import { isFailed, type Check } from "./check.ts";
import { checkDeployed } from "./check-deployed.ts";
import { checkLayout } from "./check-layout.ts";
import { checkSigning } from "./check-signing.ts";
import { checkIdentity } from "./check-identity.ts";
import { checkRegion } from "./check-region.ts";
import { fixRegion, type Fix, type FixedRegion } from "./fix.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, printResult, type OutputOptions } from "../../ui/output.ts";
import { openSettings } from "@agarose/storage/buckets/stores";
import { PopClient } from "@agarose/storage/pops/pop-client";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** The options of `agarose doctor`. */
export type DoctorOptions = Values<typeof args>;

const WRANGLER_FILES = ["wrangler.jsonc", "wrangler.json", "wrangler.toml"];
/** Any list that is not empty, in JSON or TOML, as a text or as a list. */
const PRIVATE_PREFIXES = /^[ \t]*["']?PRIVATE_PREFIXES["']?\s*[=:][^\n[]*\[\s*\\?["']/m;
const MARKS = { ok: "ok  ", warn: "WARN", fail: "FAIL" } as const;

/** Runs `agarose doctor`. The command exits with 1 when a check fails, and with 0 when there are warnings alone. */
export async function doctor(options: DoctorOptions): Promise<number> {
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
    const { config, signal } = context;
    const [layout, signing, regions, pops] = await Promise.all([
      checkLayout(config),
      checkSigning(config),
      checkRegions(context, options, path),
      checkPops(config.pops, signal),
    ]);
    // After the buckets are made.
    const isWritable = ({ name, state }: Check): boolean => name === "write" && state === "ok";
    const writable = regions.flatMap(({ checks }) => checks.filter(isWritable).map(({ subject }) => subject));
    const identity = await checkIdentity(context, { fix: options.fix === true && !options.dryRun, writable });
    const found = [...layout, signing, ...identity, ...regions.flatMap(({ checks }) => checks), ...pops];
    const fixes = options.fix ? { fixes: regions.flatMap((region) => region.fixes) } : {};
    return report({ checks: [...refusedEverywhere(found, config), ...found], ...fixes }, options);
  });
}

/** Checks every region, and with --fix mends it. */
async function checkRegions(
  { config, stores, signal }: CommandContext,
  { origin, fix, dryRun = false }: DoctorOptions,
  path: string,
): Promise<FixedRegion[]> {
  const regionOptions = { ...(origin && { origin }), fetch, nowMs: Date.now, signal };
  if (!fix) {
    return Promise.all(stores.map(async (store) => ({ checks: await checkRegion(store, regionOptions), fixes: [] })));
  }
  const guardedBy = await guardingFile(dirname(path));
  const fixOptions = { origin: origin ?? "*", dryRun, ...(guardedBy && { guardedBy }), signal };
  const settings = openSettings(config, WRITING, signal);
  try {
    return await Promise.all(
      stores.map((store, at) => fixRegion(() => checkRegion(store, regionOptions), settings[at]!, fixOptions)),
    );
  } finally {
    for (const one of settings) one.close();
  }
}

/** The Worker's configuration beside the command line's that keeps prefixes private, if one does. */
async function guardingFile(folder: string): Promise<string | undefined> {
  for (const name of WRANGLER_FILES) {
    const text = await readFile(join(folder, name), "utf8").catch(() => "");
    if (PRIVATE_PREFIXES.test(text)) return name;
  }
  return undefined;
}

function report(
  { checks, fixes }: { checks: readonly Check[]; fixes?: readonly Fix[] },
  options: OutputOptions,
): number {
  const failed = checks.filter(isFailed).length;
  const mendable = fixes ? 0 : checks.filter(({ remedy }) => remedy !== undefined).length;
  printResult(options, { ok: failed === 0, checks, ...(fixes && { fixes }) }, [
    ...(fixes ?? []).map(
      ({ subject, remedy, outcome, message }) => `${outcome.padEnd(7)}  ${subject}: ${remedy}: ${message}`,
    ),
    ...checks.map(({ subject, name, state, message }) => `${MARKS[state]}  ${subject}: ${name}: ${message}`),
    `${checks.length} checks, ${failed} failed`,
    ...(mendable > 0 ? [`\`agarose doctor --fix\` can mend ${formatCount(mendable, "finding")}`] : []),
  ]);
  return failed === 0 ? EXIT_OK : EXIT_FAILED;
}

/** One plain sentence when no region takes its keys: then the keys are wrong, and nothing else was checked. */
function refusedEverywhere(checks: readonly Check[], { regions }: Config): Check[] {
  const refused = checks.filter(
    ({ name, message }) => name === "credentials" && message.startsWith("CREDENTIALS_REFUSED"),
  );
  if (refused.length < regions.length) return [];
  const message =
    `all ${regions.length} regions refused their keys, so nothing else was checked: check where the keys come from, ` +
    "that they are not expired, and the clock of this machine";
  return [{ subject: "configuration", name: "credentials", state: "fail", message }];
}

function checkPops(pops: Config["pops"], signal: AbortSignal): Promise<Check[]> {
  return Promise.all(
    pops.map(async (pop): Promise<Check> => {
      const check = { subject: pop.name, name: "health" };
      try {
        await new PopClient(pop, { signal }).health();
        return { ...check, state: "ok", message: `${pop.url} answers` };
      } catch (error) {
        signal.throwIfAborted();
        return { ...check, state: "fail", message: toAgaroseError(error, "SOURCE_FAILED").message };
      }
    }),
  );
}
