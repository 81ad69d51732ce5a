/** Takes the steps of a deployment. */
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgaroseError } from "@agarose/core";
import { shapeIn } from "@agarose/storage/config/json";
import * as v from "valibot";
import { argumentsOf, commandOf, withNamespaceId, type Step } from "./deployment.ts";
import { patchVariables, type Wrangler, type WranglerResult } from "./wrangler.ts";

/** Dependencies of the steps. */
export interface DeploymentOptions {
  /** Path of Wrangler's configuration. */
  readonly config: string;
  readonly wrangler: Wrangler;
  readonly secrets: Readonly<Record<string, string>>;
  /** Build, and change nothing: neither at Cloudflare nor in that file. */
  readonly dryRun: boolean;
  readonly newSecret: () => string;
  /** Receives each step before it is taken. */
  readonly onStep: (step: Step) => void;
}

/** A step, the command that takes it by hand, and whether it was taken. */
export interface TakenStep {
  readonly step: Step;
  readonly command: string;
  /** A step that is not `done` is only printed: a dry run takes builds alone. */
  readonly outcome: "done" | "planned";
}

/** Takes `steps` in order. Rejects with STORE_FAILED at the first one that fails; what was done before it remains. */
export async function runDeployment(steps: readonly Step[], options: DeploymentOptions): Promise<TakenStep[]> {
  const taken: TakenStep[] = [];
  for (const step of steps) {
    options.onStep(step);
    const isTaken = !options.dryRun || step.kind === "build";
    if (isTaken) await take(step, options);
    taken.push({ step, command: commandOf(step, options.config), outcome: isTaken ? "done" : "planned" });
  }
  return taken;
}

async function take(step: Step, options: DeploymentOptions): Promise<void> {
  const { config, secrets, wrangler } = options;
  if (step.kind === "namespace") return takeNamespace(step, options);
  if (step.kind === "peers") return writeVariables(config, step.pop, { PEERS: step.list });
  if (step.kind === "peer-key") return takePeerKey(step, options);
  if (step.kind === "keys") return writeVariables(config, step.pop, step.variables);
  if (step.kind === "secrets") {
    const chosen = Object.fromEntries(step.names.map((name) => [name, secrets[name]]));
    demand(step, config, await wrangler(argumentsOf(step, config), JSON.stringify(chosen)));
    return;
  }
  const outdir = await mkdtemp(join(tmpdir(), "agarose-deploy-"));
  try {
    const result = await wrangler(argumentsOf(step, config, outdir));
    const advice = result.code !== 0 && step.kind === "deploy" ? await adviceOn(step, options) : "";
    demand(step, config, result, advice);
  } finally {
    await rm(outdir, { recursive: true, force: true });
  }
}

async function writeVariables(config: string, pop: string, variables: Readonly<Record<string, string>>): Promise<void> {
  if (/\.jsonc?$/.test(config)) return patchVariables(config, pop, variables);
  await writeFile(config, withVariables(await readFile(config, "utf8"), pop, variables));
}

/**
 * Gives all PoPs one key. Cloudflare never shows a secret again, so a PoP without one means a new key for all. Those
 * that differ for a moment work alone in the meantime.
 */
async function takePeerKey(
  step: Extract<Step, { kind: "peer-key" }>,
  { config, wrangler, newSecret }: DeploymentOptions,
): Promise<void> {
  const list = (pop: string): Promise<WranglerResult> =>
    wrangler(["secret", "list", "--env", pop, "--format", "json", "--config", config]);
  const has = ({ stdout }: WranglerResult): boolean => /"PEER_KEY"/.test(stdout);
  const deployed = step.pop.split(",");
  const lacking: string[] = [];
  for (const pop of deployed) if (!has(demand(step, config, await list(pop)))) lacking.push(pop);
  if (lacking.length === 0) return;
  const sharing: string[] = [];
  // A PoP that is not deployed yet has no list of secrets; its own deployment gives it a key.
  for (const pop of step.others) if (has(await list(pop))) sharing.push(pop);
  const secrets = JSON.stringify({ PEER_KEY: newSecret() });
  for (const pop of [...deployed, ...sharing]) {
    demand(step, config, await wrangler(["secret", "bulk", "--env", pop, "--config", config], secrets));
  }
}

/** Finds the namespace first: a deployment that was cut off may have made it. */
async function takeNamespace(
  step: Extract<Step, { kind: "namespace" }>,
  { config, wrangler }: DeploymentOptions,
): Promise<void> {
  let id = await namespaceId(step, config, wrangler);
  if (id === undefined) {
    demand(step, config, await wrangler(argumentsOf(step, config)));
    id = await namespaceId(step, config, wrangler);
  }
  if (id === undefined) {
    throw new AgaroseError("STORE_FAILED", `Wrangler created the KV namespace ${step.title} and does not list it`);
  }
  await writeFile(config, withNamespaceId(await readFile(config, "utf8"), step.placeholder, id));
}

/**
 * Resolves to what to do about a namespace that Wrangler made for a Worker that Cloudflare then refused. At its next
 * run, Wrangler neither links it nor makes a second one with its title.
 */
async function adviceOn(
  step: Extract<Step, { kind: "deploy" }>,
  { config, wrangler }: DeploymentOptions,
): Promise<string> {
  const { pop, provisions: title } = step;
  if (title === undefined) return "";
  const isDeployed = (await wrangler(["secret", "list", "--env", pop, "--config", config])).code === 0;
  const id = isDeployed ? undefined : await namespaceId({ ...step, title }, config, wrangler).catch(() => undefined);
  if (id === undefined) return "";
  return `The KV namespace ${title} exists and no Worker has it: write "id": "${id}" to CHUNKS of ${pop} in ${config}. `;
}

const NAMESPACES_SHAPE = v.array(v.object({ id: v.string(), title: v.string() }));

async function namespaceId(
  step: Step & { title: string },
  config: string,
  wrangler: Wrangler,
): Promise<string | undefined> {
  const result = demand(step, config, await wrangler(["kv", "namespace", "list", "--config", config]));
  const listed = shapeIn(NAMESPACES_SHAPE, result.stdout.slice(result.stdout.indexOf("[")));
  if (listed) return listed.find(({ title }) => title === step.title)?.id;
  throw new AgaroseError("STORE_FAILED", `Wrangler's list of KV namespaces is none: ${result.stdout.slice(0, 200)}`);
}

function demand(step: Step, config: string, result: WranglerResult, advice = ""): WranglerResult {
  if (result.code === 0) return result;
  const said = (result.stderr.trim() || result.stdout.trim()).slice(-2_000);
  throw new AgaroseError(
    "STORE_FAILED",
    `${commandOf(step, config)} failed with exit code ${result.code}; the steps before it are done, and running the command again ` +
      `continues there. ${advice}Wrangler said:\n${said}`,
    { pop: step.pop, step: step.kind, exitCode: result.code },
  );
}

/** A string of TOML, of one line or of several. */
const TOML_STRING = String.raw`'''[\s\S]*?'''|"""[\s\S]*?"""|'[^'\n]*'|"(?:[^"\\\n]|\\.)*"`;

/**
 * Returns `text` of wrangler.toml with `variables` in the table [env.`pop`.vars]: over what is there, or at the head of
 * the table. Throws CONFIG_INVALID, with the lines to write by hand, for a file without that table, and for a value
 * with an apostrophe.
 */
export function withVariables(text: string, pop: string, variables: Readonly<Record<string, string>>): string {
  const section = new RegExp(`^[ \\t]*\\[env\\.${escaped(pop)}\\.vars\\][^\\n]*$`, "m").exec(text);
  const lines = Object.entries(variables).map(([name, value]) => [name, `${name} = '${value}'`] as const);
  if (!section || Object.values(variables).some((value) => value.includes("'"))) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      `Wrangler's configuration has no section [env.${pop}.vars] to write ${Object.keys(variables).join(" and ")} into: ` +
        `write there yourself: ${lines.map(([, line]) => line).join(", ")}`,
      { pop },
    );
  }
  const start = section.index + section[0].length;
  const rest = text.slice(start);
  // A line of an array may begin with a bracket, too, but not with a letter behind it.
  const end = /^[ \t]*\[+[A-Za-z_]/m.exec(withoutTexts(rest))?.index ?? rest.length;
  let table = rest.slice(0, end);
  const added: string[] = [];
  for (const [name, line] of lines) {
    const known = new RegExp(`^[ \\t]*${name}\\s*=\\s*(?:${TOML_STRING}|true|false)`, "m");
    if (known.test(table)) table = table.replace(known, () => line);
    else added.push(`\n${line}`);
  }
  return text.slice(0, start) + added.join("") + table + rest.slice(end);
}

/** Returns TOML of the same length in which no text of several lines looks like a section. */
function withoutTexts(toml: string): string {
  return toml.replace(/'''[\s\S]*?'''|"""[\s\S]*?"""/g, (text) => text.replaceAll("[", " "));
}

function escaped(name: string): string {
  return name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
