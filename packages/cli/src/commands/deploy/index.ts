/**
 * `agarose deploy`: every PoP of wrangler.toml, or some, through Wrangler: KV namespaces, the Worker, its secrets.
 */
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { AgaroseError } from "@agarose/core";
import type { Command } from "commander";
import type { GlobalOptions } from "../../lib/context.ts";
import { commandOf, planDeployment, SECRETS, type Step } from "./deployment.ts";
import { runDeployment } from "./run-deployment.ts";
import { installedWrangler, readEnvironments } from "./wrangler.ts";
import { logLine, printResult } from "../../lib/output.ts";

interface DeployOptions extends GlobalOptions {
  readonly wrangler: string;
  readonly pops?: string[];
  readonly secrets?: string;
  readonly dryRun?: boolean;
}

const ENV_PREFIX = "AGAROSE_SECRET_";

export function register(program: Command): void {
  program
    .command("deploy")
    .description(`deploy PoPs with Wrangler; secrets come from --secrets or from ${ENV_PREFIX}<NAME>`)
    .option("--wrangler <path>", "Wrangler's configuration, one environment a PoP", "wrangler.toml")
    .option("--pops <names>", "only these, separated by commas", (names: string) => names.split(","))
    .option("--secrets <path>", "JSON object of secrets to set; - is stdin")
    .option("--dry-run", "build, and say what would be done; needs no account")
    .action(async (_options: unknown, command: Command) => {
      await deploy(command.optsWithGlobals<DeployOptions>());
    });
}

async function deploy(options: DeployOptions): Promise<void> {
  const config = options.wrangler;
  const secrets = { ...secretsOfEnvironment(), ...(await secretsOfFile(options.secrets)) };
  const environments = await readEnvironments(config, options.pops);
  const steps = planDeployment(environments, Object.keys(secrets));
  const dryRun = options.dryRun ?? false;
  const onStep = (step: Step): void => logLine(`${step.pop}: ${step.kind}`);
  const taken = await runDeployment(steps, { config, wrangler: installedWrangler(), secrets, dryRun, onStep });
  printResult(options.json ?? false, { dryRun, steps: taken }, [
    ...taken.map(({ step, outcome }) => `${outcome === "done" ? "done " : "would"}  ${commandOf(step, config)}`),
    ...taken.flatMap(({ step, outcome }) =>
      step.kind === "namespace" && outcome === "told"
        ? [`would  write its id into ${config}, in place of ${step.placeholder}`]
        : [],
    ),
    ...(dryRun ? [] : ["then: agarose status, once a minute has passed"]),
  ]);
}

function secretsOfEnvironment(): Record<string, string> {
  return Object.fromEntries(
    SECRETS.flatMap((name) => {
      const value = process.env[`${ENV_PREFIX}${name}`];
      return value ? [[name, value]] : [];
    }),
  );
}

/** Throws USAGE for what is no secret of a PoP, without telling its value. */
async function secretsOfFile(path: string | undefined): Promise<Record<string, string>> {
  if (path === undefined) return {};
  const content = path === "-" ? await text(process.stdin) : await readFile(path, "utf8").catch(unreadable(path));
  let json: unknown;
  try {
    json = JSON.parse(content);
  } catch {
    throw new AgaroseError("USAGE", `--secrets ${path} is not JSON: {"ADMIN_TOKEN": "…"} is expected`);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) {
    throw new AgaroseError("USAGE", `--secrets ${path} is no JSON object`);
  }
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [secretName(name), secretText(name, value)]));
}

function secretName(name: string): string {
  if ((SECRETS as readonly string[]).includes(name)) return name;
  throw new AgaroseError("USAGE", `${name} is no secret of a PoP: ${SECRETS.join(", ")} are`);
}

/** Credentials may be given as the object that they are. */
function secretText(name: string, value: unknown): string {
  if (typeof value === "string" && value !== "") return value;
  if (name === "BUCKET_CREDENTIALS" && typeof value === "object" && value !== null) return JSON.stringify(value);
  throw new AgaroseError("USAGE", `secret ${name} is empty or no text`);
}

function unreadable(path: string) {
  return (error: unknown): never => {
    throw new AgaroseError("USAGE", `--secrets ${path} cannot be read: ${(error as Error).message}`, { path }, error);
  };
}
