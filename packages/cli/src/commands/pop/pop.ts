/** `agarose pop`: one PoP on this machine, with its chunk cache on disk and its state in SQLite. */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { isRecord } from "@agarose/core/format";
import { startPop } from "@agarose/pop";
import { stopSignal } from "@agarose/pop/stop-signal";
import { loadConfig, type Config } from "@agarose/storage/config/config";
import { unreadable } from "@agarose/storage/files/file-errors";
import { PopClient } from "@agarose/storage/pops/pop-client";
import { VARIABLE_NAMES } from "@agarose/worker/reference";
import { configPath } from "../../lib/config-path.ts";
import { sharedVariables } from "../../lib/pop-variables.ts";
import { EXIT_OK, printResult } from "../../ui/output.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

/** Runs `agarose pop`. The command runs until a signal, or rejects with CONFIG_INVALID before it listens. */
export async function pop({ name, ...options }: Values<typeof args>): Promise<number> {
  const stop = stopSignal();
  const { host, port } = options.listen;
  const path = configPath(options.config);
  // Without a configuration the variables say everything; one that was named must be there.
  const config = options.config === undefined && !existsSync(path) ? undefined : await loadConfig(path);
  const variables = await readVariables({ name, file: options.vars, config, environment: process.env });
  const running = await startPop({
    variables,
    folder: options.data,
    host,
    port,
    behindProxy: options.behindProxy ?? false,
  });
  try {
    await checkHealth(running.url, variables["POP"] ?? "");
    printResult(options, { ok: true, pop: variables["POP"], url: running.url, pid: process.pid }, [
      `PoP ${variables["POP"]} listens on ${running.url}; Ctrl-C ends it`,
    ]);
    await stop.asked;
  } finally {
    await running.close();
  }
  return EXIT_OK;
}

/** Throws CONFIG_INVALID with what the PoP itself finds wrong with its variables. */
async function checkHealth(url: string, name: string): Promise<void> {
  await new PopClient({ name, url }).health().catch((error: unknown) => {
    const { message, details } = toAgaroseError(error);
    throw new AgaroseError("CONFIG_INVALID", String(details["reason"] ?? message), undefined, error);
  });
}

/** Where variables come from; later ones override earlier ones. */
interface VariableSources {
  readonly config: Config | undefined;
  /** Path of a JSON object. */
  readonly file: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The name on the command line, which counts most. */
  readonly name: string | undefined;
}

/** Resolves to the variables by name. Rejects with CONFIG_INVALID for a file that is no JSON object of known names. */
export async function readVariables(sources: VariableSources): Promise<Record<string, string>> {
  const { config, file, environment, name } = sources;
  const known = VARIABLE_NAMES.filter((variable) => environment[variable]);
  return {
    ...(config && sharedVariables(config, { hasBindings: false })),
    ...(file !== undefined && (await ofFile(file))),
    ...Object.fromEntries(known.map((variable) => [variable, environment[variable]!])),
    ...(name !== undefined && { POP: name }),
  };
}

async function ofFile(path: string): Promise<Record<string, string>> {
  const problem = (message: string, cause?: unknown): AgaroseError =>
    new AgaroseError("CONFIG_INVALID", message, { path }, cause);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw problem(unreadable(path, error), error);
  });
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw problem(`${path} is not JSON: ${(error as Error).message}`, error);
  }
  if (!isRecord(parsed)) throw problem(`${path} is not a JSON object of variables`);
  const unknown = Object.keys(parsed).find((variable) => !VARIABLE_NAMES.includes(variable));
  if (unknown !== undefined) throw problem(`${path} has ${unknown}, which is not a variable of a PoP`);
  // REGIONS and the like may be written as JSON instead of as text of JSON.
  return Object.fromEntries(
    Object.entries(parsed).map(([variable, value]) => [
      variable,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
}
