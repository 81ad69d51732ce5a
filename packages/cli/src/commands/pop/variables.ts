/** The variables of a PoP on this machine, from the configuration, a file and the environment. */
import { readFile } from "node:fs/promises";
import { AgaroseError } from "@agarose/core";
import { isRecord } from "@agarose/core/format";
import { VARIABLE_NAMES } from "@agarose/worker/reference";
import type { Config } from "@agarose/storage/config/config";
import { unreadable } from "@agarose/storage/files/file-errors";
import { sharedVariables } from "../../lib/pop-variables.ts";

/** Where variables come from; later ones override earlier ones. */
export interface VariableSources {
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
