/**
 * The steps of `agarose deploy`, which --dry-run prints, and which otherwise run one after the other. Every PoP is one
 * environment of wrangler.toml. Pure.
 */
import { AgaroseError } from "@agarose/core";
import type { Config } from "@agarose/storage/config/config";
import { shapeIn } from "@agarose/storage/config/json";
import * as v from "valibot";
import { missingPlace, type PlacedEnvironment } from "./place.ts";

/** An environment of wrangler.toml, in the part that is used here. */
export interface PopEnvironment extends PlacedEnvironment {
  readonly worker: string;
  readonly namespaces: readonly { readonly binding: string; readonly id?: string }[];
  readonly crons: readonly string[];
  readonly durableObjects: readonly string[];
}

/** One step of a deployment. All but `namespace`, `secrets` and the deployments themselves can be repeated freely. */
export type Step =
  /** Creates a KV namespace, or finds it by its title, and writes its id over `placeholder` in wrangler.toml. */
  | { readonly kind: "namespace"; readonly pop: string; readonly title: string; readonly placeholder: string }
  /** Writes PEERS into wrangler.toml. */
  | { readonly kind: "peers"; readonly pop: string; readonly list: string }
  /** Writes whose manifests the PoP uses into wrangler.toml. */
  | { readonly kind: "keys"; readonly pop: string; readonly variables: TrustVariables }
  | { readonly kind: "build"; readonly pop: string }
  /** With the title of the KV namespace that Wrangler makes, unless the Worker has one or the file has its id. */
  | { readonly kind: "deploy"; readonly pop: string; readonly provisions?: string }
  | { readonly kind: "secrets"; readonly pop: string; readonly names: readonly string[] }
  /** Makes the key of the PoPs `pop`, joined by commas, unless all have one. Deployed `others` share it. */
  | { readonly kind: "peer-key"; readonly pop: string; readonly others: readonly string[] };

/** The cooperation of the PoPs that are deployed. */
interface PeerSteps {
  /** Changes to wrangler.toml, which are written before anything is built. */
  readonly lists: readonly Step[];
  /** The common key, once the PoPs are deployed. */
  readonly keys: readonly Step[];
  readonly warnings: readonly string[];
}

/** A step that is one command of Wrangler. */
type WranglerStep = Exclude<Step, { kind: "keys" | "peers" | "peer-key" }>;

/** The names of the Worker's secrets that `--secrets` may set. */
export const SECRETS = ["ADMIN_TOKEN", "READ_TOKEN", "SIGNING_KEY", "PEER_KEY", "BUCKET_CREDENTIALS"] as const;

const CACHE_BINDING = "CHUNKS";
const OBJECT_BINDINGS = ["REQUEST_MONITOR", "POP_STATE", "PEER_STATE"];

/**
 * The steps for `pops`: namespaces, public keys and peers, then all builds, so that a failed build deploys nothing,
 * then the Worker and the secrets of each PoP, and last the key that they share.
 *
 * @param secrets names of those to set.
 * @param trust whose manifests the PoPs use, where the configuration says it.
 * @throws CONFIG_INVALID for an environment that is not a PoP.
 */
export function planDeployment(
  pops: readonly PopEnvironment[],
  secrets: readonly string[],
  peers: Pick<PeerSteps, "lists" | "keys"> = { lists: [], keys: [] },
  trust?: TrustVariables,
): Step[] {
  for (const pop of pops) checkPop(pop);
  checkShared(pops);
  return [
    ...pops.flatMap((pop) => namespaceStep(pop)),
    ...pops.flatMap((pop): Step[] =>
      trust && differs(pop, trust) ? [{ kind: "keys", pop: pop.name, variables: trust }] : [],
    ),
    ...peers.lists,
    ...pops.map(({ name }): Step => ({ kind: "build", pop: name })),
    ...pops.flatMap((pop): Step[] => [
      deployStep(pop),
      ...(secrets.length > 0 ? [{ kind: "secrets", pop: pop.name, names: secrets } as const] : []),
    ]),
    ...peers.keys,
  ];
}

/** The command line of a step. Secrets go to stdin and are never shown. */
export function commandOf(step: Step, config: string): string {
  if (step.kind === "peers") return `write PEERS of ${step.pop} into ${config}: ${step.list}`;
  if (step.kind === "peer-key") {
    return `wrangler secret bulk --env ${step.pop} --config ${config}  # stdin: PEER_KEY, a new one unless all have one`;
  }
  if (step.kind === "keys") return `write PUBLISHER_KEYS and UNSIGNED of [env.${step.pop}.vars] into ${config}`;
  return `wrangler ${argumentsOf(step, config).join(" ")}${remarkOn(step)}`;
}

function remarkOn(step: WranglerStep): string {
  if (step.kind === "secrets") return `  # stdin: ${step.names.join(", ")}`;
  if (step.kind !== "deploy" || step.provisions === undefined) return "";
  return `  # makes the KV namespace ${step.provisions} unless the Worker has one`;
}

/** The arguments for Wrangler. A build writes nothing that outlives it. */
export function argumentsOf(step: WranglerStep, config: string, outdir?: string): string[] {
  if (step.kind === "namespace") return ["kv", "namespace", "create", step.title, "--config", config];
  if (step.kind === "secrets") return ["secret", "bulk", "--env", step.pop, "--config", config];
  const build = step.kind === "build" ? ["--dry-run", ...(outdir === undefined ? [] : ["--outdir", outdir])] : [];
  return ["deploy", ...build, "--env", step.pop, "--config", config];
}

/** `text` of wrangler.toml with `id` for `placeholder`. Throws CONFIG_INVALID unless it occurs exactly once. */
export function withNamespaceId(text: string, placeholder: string, id: string): string {
  const parts = text.split(placeholder);
  if (parts.length === 2) return parts.join(id);
  throw invalid(
    `has the KV id ${JSON.stringify(placeholder)} ${parts.length - 1} times: give every PoP its own placeholder, or ` +
      `write the id ${id} yourself`,
  );
}

/** Whether `id` is not one of Cloudflare's: those are 32 hex digits, and never begin with 16 zeros. */
function isPlaceholder(id: string): boolean {
  return !/^[\da-f]{32}$/.test(id) || id.startsWith("0".repeat(16));
}

function namespaceStep(pop: PopEnvironment): Step[] {
  const id = cacheIdOf(pop);
  if (id === undefined || !isPlaceholder(id)) return [];
  return [{ kind: "namespace", pop: pop.name, title: titleOf(pop), placeholder: id }];
}

/** Without an id in the file, Wrangler makes the namespace with the Worker, and every later version inherits it. */
function deployStep(pop: PopEnvironment): Step {
  return { kind: "deploy", pop: pop.name, ...(cacheIdOf(pop) === undefined && { provisions: titleOf(pop) }) };
}

function cacheIdOf({ namespaces }: PopEnvironment): string | undefined {
  return namespaces.find(({ binding }) => binding === CACHE_BINDING)!.id;
}

/** The title that Wrangler chooses, too: the Worker's name and the binding's. */
function titleOf({ worker }: PopEnvironment): string {
  return `${worker}-chunks`;
}

function checkPop(pop: PopEnvironment): void {
  const { name, namespaces, crons, durableObjects, vars } = pop;
  if (!namespaces.some(({ binding }) => binding === CACHE_BINDING)) {
    throw invalid(`has no KV namespace ${CACHE_BINDING} in [env.${name}]: add the binding, without an id`);
  }
  const missing = OBJECT_BINDINGS.filter((binding) => !durableObjects.includes(binding));
  if (missing.length > 0) throw invalid(`has no Durable Object ${missing.join(", ")} in [env.${name}]`);
  if (crons.length === 0) throw invalid(`has no cron in [env.${name}]: nothing would ever be cached`);
  if (vars["POP"] !== name) {
    throw invalid(
      `calls the PoP ${JSON.stringify(vars["POP"])} in [env.${name}.vars]: POP = ${JSON.stringify(name)} is expected`,
    );
  }
  if (typeof vars["REGIONS"] !== "string") throw invalid(`has no REGIONS in [env.${name}.vars]`);
  const problem = missingPlace(pop);
  if (problem !== undefined) throw invalid(problem);
}

/** Throws when PoPs share a cache: each would evict what it does not know. */
function checkShared(pops: readonly PopEnvironment[]): void {
  const owners = new Map<string, string>();
  for (const pop of pops) {
    const { name } = pop;
    const id = cacheIdOf(pop);
    if (id === undefined) continue;
    const other = owners.get(id);
    if (other !== undefined)
      throw invalid(`gives [env.${other}] and [env.${name}] the same KV id ${JSON.stringify(id)}`);
    owners.set(id, name);
  }
}

function invalid(problem: string): AgaroseError {
  return new AgaroseError("CONFIG_INVALID", `Wrangler's configuration ${problem}`);
}

interface PopVariables {
  readonly name: string;
  readonly vars: Readonly<Record<string, unknown>>;
}

/** The two variables as they are to be. */
type TrustVariables = Readonly<Record<"PUBLISHER_KEYS" | "UNSIGNED", string>>;

/** The variables for a configuration; undefined for one that says nothing, such as that of a local world. */
export function trustVariables(config: Config | undefined): TrustVariables | undefined {
  if (!config?.publicKeys && !config?.unsigned) return undefined;
  return { PUBLISHER_KEYS: JSON.stringify(config.publicKeys ?? []), UNSIGNED: String(config.unsigned ?? false) };
}

/** Whether the variables of a PoP have to be written. */
function differs({ vars }: PopVariables, wanted: TrustVariables): boolean {
  return vars["PUBLISHER_KEYS"] !== wanted.PUBLISHER_KEYS || String(vars["UNSIGNED"]) !== wanted.UNSIGNED;
}

/** The problem of a PoP without public keys or unsigned mode: it would refuse every request. */
export function trustProblems(pops: readonly PopVariables[], wanted: TrustVariables | undefined): string[] {
  if (wanted) return [];
  return pops.flatMap(({ name, vars }) => {
    const hasKeys = ![undefined, "", "[]"].includes(vars["PUBLISHER_KEYS"] as string | undefined);
    if (hasKeys !== (String(vars["UNSIGNED"]) === "true")) return [];
    return [
      `Wrangler's configuration needs either PUBLISHER_KEYS or UNSIGNED = "true" in [env.${name}.vars]: make a key with ` +
        "`agarose keys new`, and deploy with the configuration that names it",
    ];
  });
}

type PopAddress = Config["pops"][number];

/** The value of PEERS for a PoP that works alone. */
const PEERS_OFF = "off";

/**
 * Returns the steps by which all PoPs of the configuration cooperate. PoPs with `PEERS = "off"` are left alone.
 *
 * @param all every environment of wrangler.toml.
 * @param deployed names of those that are deployed.
 * @param addresses `pops` of the configuration.
 * @param hasKey whether PEER_KEY is among the secrets given.
 */
export function peerSteps(
  all: readonly PopEnvironment[],
  deployed: readonly string[],
  addresses: readonly PopAddress[],
  hasKey: boolean,
): PeerSteps {
  const willing = all.filter(({ vars }) => vars["PEERS"] !== PEERS_OFF);
  const unnamed = willing.filter(({ name }) => !addresses.some((pop) => pop.name === name)).map(({ name }) => name);
  const warnings =
    unnamed.length > 0 && all.length > 1
      ? [
          `${unnamed.join(", ")} will not cooperate: add name and url to \`pops\` of agarose.config.json, and deploy again`,
        ]
      : [];
  const refusing = new Set(all.filter((pop) => !willing.includes(pop)).map(({ name }) => name));
  const pops = addresses.filter(({ name }) => !refusing.has(name)).map(({ name, url }) => ({ name, url }));
  const named = willing.filter(({ name }) => pops.some((pop) => pop.name === name));
  if (pops.length < 2 || named.length === 0) return { lists: [], keys: [], warnings };
  const list = JSON.stringify(pops);
  const lists = named
    .filter(({ vars }) => !isSameList(vars["PEERS"], pops))
    .map(({ name }): Step => ({ kind: "peers", pop: name, list }));
  const names = named.map(({ name }) => name);
  const now = names.filter((name) => deployed.includes(name));
  const key: Step = { kind: "peer-key", pop: now.join(","), others: names.filter((name) => !now.includes(name)) };
  return { lists, keys: hasKey || now.length === 0 ? [] : [key], warnings };
}

const PEERS_SHAPE = v.array(v.object({ name: v.string(), url: v.string() }));

function isSameList(text: unknown, pops: readonly PopAddress[]): boolean {
  const list = shapeIn(PEERS_SHAPE, String(text));
  const line = ({ name, url }: Pick<PopAddress, "name" | "url">): string => `${name} ${url.replace(/\/+$/, "")}`;
  return list?.map(line).toSorted().join("\n") === pops.map(line).toSorted().join("\n");
}
