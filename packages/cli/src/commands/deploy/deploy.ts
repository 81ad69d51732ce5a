/**
 * `agarose deploy`: every PoP of Wrangler's configuration, or some, through Wrangler: KV namespaces, the Worker, its
 * secrets.
 */
import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { AgaroseError } from "@agarose/core";
import { isRecord, isText } from "@agarose/core/format";
import { regionsByName } from "@agarose/storage/buckets/region-names";
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { jsonIn } from "@agarose/storage/config/json";
import { unreadable } from "@agarose/storage/files/file-errors";
import { configPath } from "../../lib/config-path.ts";
import { logLine, printResult } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import {
  commandOf,
  peerSteps,
  planDeployment,
  SECRETS,
  trustProblems,
  trustVariables,
  type PopEnvironment,
  type Step,
} from "./deployment.ts";
import { runDeployment, type TakenStep } from "./run-deployment.ts";
import { installedWrangler, readEnvironments } from "./wrangler.ts";
import { ENV_PREFIX, type args } from "./index.ts";

const SECRET_BYTES = 32;

/**
 * Runs `agarose deploy`. Rejects with CONFIG_INVALID before any step, and with STORE_FAILED at the first step that
 * fails.
 */
export async function deploy(options: Values<typeof args>): Promise<void> {
  const config = options.wrangler ?? (existsSync("wrangler.jsonc") ? "wrangler.jsonc" : "wrangler.toml");
  const secrets = { ...secretsOfEnvironment(), ...(await secretsOfFile(options.secrets)) };
  const environments = await readEnvironments(config, options.pops);
  const own = await ownConfig(options.config);
  const trust = trustVariables(own);
  const peers = peerSteps(
    await readEnvironments(config),
    environments.map(({ name }) => name),
    own?.pops ?? [],
    "PEER_KEY" in secrets,
  );
  const steps = planDeployment(environments, Object.keys(secrets), peers, trust);
  const dryRun = options.dryRun ?? false;
  const [problem, ...more] = trustProblems(environments, trust);
  if (problem !== undefined && !dryRun) throw new AgaroseError("CONFIG_INVALID", problem, { more });
  const onStep = (step: Step): void => logLine(`${step.pop}: ${step.kind}`);
  const newSecret = (): string => randomBytes(SECRET_BYTES).toString("hex");
  const trustWarnings = problem === undefined ? [] : [problem, ...more];
  const warnings = [...trustWarnings, ...regionWarnings(environments, own), ...peers.warnings];
  for (const warning of warnings) logLine(`warning: ${warning}`);
  const taken = await runDeployment(steps, {
    config,
    wrangler: installedWrangler(),
    secrets,
    dryRun,
    newSecret,
    onStep,
  });
  printResult(options, { dryRun, steps: taken, warnings }, [
    ...taken.flatMap((one) => linesOf(one, config)),
    ...(dryRun ? [] : ["then: agarose status, once a minute has passed"]),
  ]);
}

/** A step as it was taken or would be, in order. */
function linesOf({ step, outcome }: TakenStep, config: string): string[] {
  const did = outcome === "done" ? "done " : "would";
  const writes =
    step.kind === "namespace" ? [`${did}  write its id into ${config}, in place of ${step.placeholder}`] : [];
  return [`${did}  ${commandOf(step, config)}`, ...writes];
}

/** The configuration to compare with; undefined where there is none. */
async function ownConfig(given: string | undefined): Promise<Config | undefined> {
  const path = configPath(given);
  return given !== undefined || existsSync(path) ? loadConfig(path) : undefined;
}

function secretsOfEnvironment(): Record<string, string> {
  return Object.fromEntries(
    SECRETS.flatMap((name) => {
      const value = process.env[`${ENV_PREFIX}${name}`];
      return value ? [[name, value]] : [];
    }),
  );
}

/** Throws USAGE for a name that is not a secret of a PoP; its value is never shown. */
async function secretsOfFile(path: string | undefined): Promise<Record<string, string>> {
  if (path === undefined) return {};
  const content = path === "-" ? await text(process.stdin) : await readFile(path, "utf8").catch(refuseSecrets(path));
  const json = jsonIn(content);
  if (!isRecord(json)) {
    throw new AgaroseError("USAGE", `--secrets ${path} is not a JSON object: {"ADMIN_TOKEN": "…"} is expected`);
  }
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [secretName(name), secretText(name, value)]));
}

function secretName(name: string): string {
  if ((SECRETS as readonly string[]).includes(name)) return name;
  throw new AgaroseError("USAGE", `${name} is not a secret of a PoP: use ${SECRETS.join(", ")}`);
}

/** Bucket credentials may be given as an object, all other secrets as strings. */
function secretText(name: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  if (name === "BUCKET_CREDENTIALS" && typeof value === "object" && value !== null) return JSON.stringify(value);
  throw new AgaroseError("USAGE", `secret ${name} is empty or not a string`);
}

function refuseSecrets(path: string) {
  return (error: unknown): never => {
    throw new AgaroseError("USAGE", `--secrets ${unreadable(path, error)}`, { path }, error);
  };
}

/** A bucket of the wrangler.toml that comes with Agarose. */
const EXAMPLE_URL = "https://agarose-frankfurt.s3.eu-central-1.amazonaws.com";

/**
 * Warnings about PoPs whose REGIONS are the example's or differ from the configuration.
 *
 * @param config undefined where there is no configuration file to compare with.
 */
export function regionWarnings(pops: readonly PopEnvironment[], config: Config | undefined): string[] {
  return pops.flatMap(({ name, vars }) => {
    const regions = regionsOf(vars["REGIONS"]);
    const where = `REGIONS of [env.${name}]`;
    if (regions.some(({ url }) => url === EXAMPLE_URL) && !config?.regions.some(({ url }) => url === EXAMPLE_URL)) {
      return [`${where} still names the example's buckets: replace them with yours`];
    }
    if (config === undefined) return [];
    const configured = new Map(regionsByName(config.regions).map((region) => [region.name, region.url]));
    const served = new Map(regions.map((region) => [region.name, region.url]));
    const missing = [...configured.keys()].filter((region) => !served.has(region));
    const unknown = [...served.keys()].filter((region) => !configured.has(region));
    const moved = [...configured].filter(([region, url]) => served.has(region) && served.get(region) !== url);
    return [
      ...(missing.length > 0 ? [`${where} lacks ${missing.join(", ")} of the configuration`] : []),
      ...(unknown.length > 0 ? [`${where} names ${unknown.join(", ")}, which the configuration does not have`] : []),
      ...moved.map(([region, url]) => `${where} has ${served.get(region)} for ${region}, the configuration ${url}`),
    ];
  });
}

/** The regions in REGIONS that can be read. The Worker refuses the others. */
function regionsOf(variable: unknown): { name: string; url: string }[] {
  const list = jsonIn(String(variable));
  if (!Array.isArray(list)) return [];
  return list.flatMap((region: unknown) => {
    if (!isRecord(region) || !isText(region["name"]) || !isText(region["url"])) return [];
    return [{ name: region["name"], url: region["url"].replace(/\/+$/, "") }];
  });
}
