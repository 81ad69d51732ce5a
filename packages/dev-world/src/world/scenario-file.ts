/** Scenario files, which `simulate` plays and a local world is built from. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { AgaroseError } from "@agarose/core";
import { parseScenario, resolveExtends, type Scenario } from "@agarose/solver/simulator";
import { unreadable } from "@agarose/storage/files/file-errors";

/** Reads a scenario and the file beside it that it extends. Throws FILE_UNREADABLE or SCENARIO_INVALID. */
export async function loadScenario(file: string, overrides: { seed?: number; runs?: number } = {}): Promise<Scenario> {
  const folder = path.dirname(file);
  const resolved = await resolveExtends(await readJson(file), (name) => readJson(path.resolve(folder, name)));
  const { seed, runs } = overrides;
  return parseScenario({
    ...(resolved as object),
    ...(seed === undefined ? {} : { seed }),
    ...(runs === undefined ? {} : { runs }),
  });
}

/** The content of a JSON file. Throws FILE_UNREADABLE or SCENARIO_INVALID. */
export async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    throw fileUnreadable(file, error);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new AgaroseError("SCENARIO_INVALID", `${file} is not JSON: ${(error as Error).message}`, { file }, error);
  }
}

/** The error for a file that cannot be read. */
export function fileUnreadable(file: string, error: unknown): AgaroseError {
  return new AgaroseError("FILE_UNREADABLE", unreadable(file, error), { file }, error);
}
