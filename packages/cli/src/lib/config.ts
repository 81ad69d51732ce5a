/**
 * Finds, reads and checks the configuration file of the command line: regions, code, promises, PoPs. It never holds
 * secrets; it says where they come from.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import * as v from "valibot";
import { AgaroseError, checkCode } from "@agarose/core";
import { configSchema, type Config } from "./config-schema.ts";
import { logLine } from "./output.ts";

export type { Config, CredentialSource, RegionConfig } from "./config-schema.ts";

/** The name of the configuration file, looked for in the working directory. */
export const CONFIG_FILE = "agarose.config.json";
/** The name that the file had before, which is also the name of the web app's public file. */
export const CONFIG_FILE_OLD = "agarose.json";

/**
 * The path to read the configuration from: `given` (of --config), or the file in the working directory. A file of the
 * old name is used with a notice on stderr, unless it is the web app's.
 */
export async function findConfig(given: string | undefined): Promise<string> {
  if (given === undefined && (existsSync(CONFIG_FILE) || !(await isOldConfig(CONFIG_FILE_OLD)))) return CONFIG_FILE;
  const path = given ?? CONFIG_FILE_OLD;
  if (basename(path) === CONFIG_FILE_OLD) {
    logLine(
      `notice: ${path} is read as the configuration of the command line: rename it to ${CONFIG_FILE}; ` +
        `${CONFIG_FILE_OLD} is the name of the web app's public file`,
    );
  }
  return path;
}

/** Reads and checks the file at `path`. Throws CONFIG_INVALID naming the field, or CODE_INVALID. */
export async function loadConfig(path: string): Promise<Config> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    throw new AgaroseError(
      "CONFIG_INVALID",
      `${path} cannot be read (${(error as NodeJS.ErrnoException).code}): write one, or name it with --config PATH`,
      { path },
      error,
    );
  }
  return parseConfig(text, path);
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
    const message = `${path} is the web app's public file: the command line reads ${CONFIG_FILE}, or --config PATH`;
    throw new AgaroseError("CONFIG_INVALID", message, { path });
  }
  const result = v.safeParse(configSchema, json);
  if (!result.success) {
    const problems = result.issues.map((issue) => ({ field: v.getDotPath(issue) ?? "", problem: problemOf(issue) }));
    const first = problems[0]!;
    const more = problems.length > 1 ? ` (and ${problems.length - 1} more)` : "";
    const what = first.field === "" ? path : `${path}: \`${first.field}\``;
    throw new AgaroseError("CONFIG_INVALID", `${what} ${first.problem}${more}`, { path, problems });
  }
  const { code, codes, stripeBytes } = result.output;
  for (const one of [code, ...codes.map((rule) => rule.code)]) {
    checkCode({ ...(one === "auto" ? { k: 1, m: 0 } : one), stripeBytes });
  }
  return result.output;
}

/** Whether `path` is a configuration of the command line, right or wrong, and not the web app's file. */
async function isOldConfig(path: string): Promise<boolean> {
  const content = await readFile(path, "utf8").catch(() => undefined);
  if (content === undefined) return false;
  try {
    return !isClientConfig(JSON.parse(content));
  } catch {
    return true;
  }
}

/** The web app's file has a prefix, and its regions have no buckets. */
function isClientConfig(json: unknown): boolean {
  return typeof json === "object" && json !== null && "prefix" in json && !("code" in json);
}

/** Valibot's own words for the commonest mistakes ("Expected never but received …") are for programmers. */
function problemOf({ kind, type, expected, received, message }: v.BaseIssue<unknown>): string {
  if (kind !== "schema") return message;
  if (expected === "never") return "is not a field of this file: check its spelling, or remove it";
  if (received === "undefined") return "is missing";
  return `must be of type ${type.replace("strict_", "")}, and is ${received}`;
}
