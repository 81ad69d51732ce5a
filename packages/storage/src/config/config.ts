/**
 * Reads and checks the configuration file of a deployment: regions, code, promises, PoPs. It never holds secrets; it
 * says where they come from.
 */
import { readFile } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import * as v from "valibot";
import { AgaroseError } from "@agarose/core";
import { checkCode } from "@agarose/core/format";
import { unreadable } from "../files/file-errors.ts";
import { describedAsStored } from "../upload/object-headers.ts";
import { configSchema, type Config, type CredentialSource } from "./config-schema.ts";
import { shapeIn } from "./json.ts";

export type { Config, CredentialSource, RegionConfig } from "./config-schema.ts";

/** The usual name of the configuration file. */
export const CONFIG_FILE = "agarose.config.json";

/**
 * Reads and checks the file at `path`: a configuration, a module whose default export is one, or what
 * `agarose dev --json` has printed, which names one. Throws CONFIG_INVALID naming the field, or CODE_INVALID.
 */
export async function loadConfig(path: string): Promise<Config> {
  const text = await readConfig(path);
  const world = configOfWorld(text);
  if (world === undefined) return withFilesBeside(path, parseConfig(text, path));
  const stopped = `the local world of ${path} has stopped: start it again, which writes a new ${basename(path)}`;
  return withFilesBeside(world, parseConfig(await readConfig(world, stopped), world));
}

/** Whether the configuration at `path` is code, which commands run but do not change. */
export function isModule(path: string): boolean {
  return /\.[cm]?[jt]s$/.test(path);
}

/** Rejects with the message `absent` where there is no such file. */
async function readConfig(path: string, absent?: string): Promise<string> {
  if (isModule(path)) return exportedConfig(path);
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const advice =
      "write one as in docs/reference/config.md, or choose another, such as the world.json of a local world";
    const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
    const message = isAbsent && absent !== undefined ? absent : `${unreadable(path, error)}: ${advice}`;
    throw new AgaroseError("CONFIG_INVALID", message, { path }, error);
  }
}

/** The default export of the module at `path`, as the JSON text of a file. */
async function exportedConfig(path: string): Promise<string> {
  const problem = (what: string, cause?: unknown): AgaroseError =>
    new AgaroseError("CONFIG_INVALID", `${path} ${what}: export an object as its default`, { path }, cause);
  const module = (await import(pathToFileURL(path).href).catch((error: unknown) => {
    throw problem(`cannot be loaded (${(error as Error).message})`, error);
  })) as { readonly default?: unknown };
  const { default: config } = module;
  if (typeof config !== "object" || config === null) throw problem("exports no configuration");
  return JSON.stringify(config);
}

/** The configuration that a local world names, if `text` is the line that `agarose dev --json` prints. */
function configOfWorld(text: string): string | undefined {
  return shapeIn(v.object({ control: v.string(), config: v.string() }), text)?.config;
}

/** Checks fields as if the file at `path` had them. Throws as `loadConfig` does. */
export function configOfFields(fields: object, path: string): Config {
  return withFilesBeside(path, parseConfig(JSON.stringify(fields), path));
}

/** Files that the configuration names are relative to its folder. */
function withFilesBeside(path: string, config: Config): Config {
  // Absolute, so that two configurations that name one file by other paths are alike.
  const beside = (file: string): string => resolve(dirname(path), file);
  const moved = (source: CredentialSource): CredentialSource =>
    source.credentialsFile === undefined ? source : { ...source, credentialsFile: beside(source.credentialsFile) };
  const withMoved = <T extends { readonly credentials?: CredentialSource | undefined }>(owner: T): T =>
    owner.credentials ? { ...owner, credentials: moved(owner.credentials) } : owner;
  const { signing, regions, origin, providers, encryption, pops } = config;
  return withMoved({
    ...config,
    ...(signing?.keyFile !== undefined && { signing: { ...signing, keyFile: beside(signing.keyFile) } }),
    encryption: encryption.map((rule) => ({
      ...rule,
      secrets: rule.secrets.map((secret) => (secret.file === undefined ? secret : { file: beside(secret.file) })),
    })),
    regions: regions.map(withMoved),
    pops: pops.map(({ adminTokenFile: file, ...pop }) => ({
      ...pop,
      ...(file !== undefined && { adminTokenFile: beside(file) }),
    })),
    ...(origin && { origin: withMoved(origin) }),
    providers: Object.fromEntries(Object.entries(providers).map(([name, provider]) => [name, withMoved(provider)])),
  });
}

/** Checks `text`, the content of the file `path`. Throws as `loadConfig` does. */
export function parseConfig(text: string, path: string): Config {
  let json: unknown;
  try {
    // Some editors put a byte order mark first.
    json = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    throw new AgaroseError("CONFIG_INVALID", `${path} is not JSON: ${(error as Error).message}`, { path }, error);
  }
  if (isClientConfig(json)) {
    const message = `${path} is the web app's public file: give the path of the deployment's own, such as ${CONFIG_FILE}`;
    throw new AgaroseError("CONFIG_INVALID", message, { path });
  }
  const config = checkedBy(configSchema, json, path);
  const { code, codes, headers, stripeBytes } = config;
  for (const one of [code, ...codes.map((rule) => rule.code)]) {
    checkCode({ ...(one === "auto" ? { k: 1, m: 0 } : one), stripeBytes });
  }
  const stored = headers.map((rule, i) => ({
    ...rule,
    headers: storedHeaders(rule.headers, `${path}: \`headers.${i}\``),
  }));
  return { ...config, headers: stored };
}

/**
 * Checks what the file `path` holds. Throws CONFIG_INVALID naming the field.
 *
 * @param isSecret whether the error may say nothing of the values.
 */
export function checkedBy<T>(schema: v.GenericSchema<unknown, T>, json: unknown, path: string, isSecret = false): T {
  const result = v.safeParse(schema, json);
  if (result.success) return result.output;
  const problems = result.issues.map((issue) => ({
    field: v.getDotPath(issue) ?? "",
    problem: problemOf(issue, isSecret),
  }));
  // A misspelt field is missing under its right name, too: the reader needs the name that is in the file.
  const first = problems.find(({ problem }) => problem === UNKNOWN_FIELD) ?? problems[0]!;
  const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
  const what = first.field === "" ? path : `${path}: \`${first.field}\``;
  throw new AgaroseError("CONFIG_INVALID", `${what} ${first.problem}${more}`, { path, problems });
}

/** The headers as manifests hold them. Throws CONFIG_INVALID for one that cannot be served. */
function storedHeaders(headers: Readonly<Record<string, string>>, place: string): Readonly<Record<string, string>> {
  try {
    return describedAsStored({ contentType: "", headers }).headers;
  } catch (error) {
    throw new AgaroseError("CONFIG_INVALID", `${place}: ${(error as Error).message}`, {}, error);
  }
}

/** The web app's file has a prefix, and its regions have no buckets. */
function isClientConfig(json: unknown): boolean {
  return typeof json === "object" && json !== null && "prefix" in json && !("code" in json);
}

const UNKNOWN_FIELD = "is not a field of this file: check its spelling, or remove it";

/** Valibot's own words for the commonest mistakes ("Expected never but received …") are for programmers. */
function problemOf({ kind, type, expected, received, message }: v.BaseIssue<unknown>, isSecret: boolean): string {
  if (kind !== "schema" || type === "literal") return message;
  if (expected === "never") return UNKNOWN_FIELD;
  if (received === "undefined") return "is missing";
  return `must be of type ${type.replace("strict_", "")}, and is ${isSecret ? "another" : received}`;
}
