/**
 * `agarose init [FOLDER]`: writes what a web app serves to read through Agarose, the worker files and the client
 * configuration, and prints the lines for files of the app's own. `agarose init --worker` writes the configuration of
 * the PoPs instead.
 */
import { existsSync } from "node:fs";
import { mkdir, readFile, realpath, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { AgaroseError } from "@agarose/core";
import { clientConfigOf, type ClientConfig } from "../../lib/files/client-config.ts";
import { loadConfig } from "@agarose/storage/config/config";
import { configPath } from "../../lib/config-path.ts";
import { formatCount, printResult } from "../../ui/output.ts";
import { readProject, registerCall, type Edit, type Project } from "./project.ts";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";
import { jsonIn } from "@agarose/storage/config/json";

type Options = Values<typeof args>;

interface WrittenFile {
  readonly path: string;
  /** `kept`: the file exists and may hold the app's own changes; --force replaces it. `updated`: its keys changed. */
  readonly outcome: "written" | "kept" | "updated";
}

const CLIENT_CONFIG = "agarose.json";
const FOLDER_DEFAULT = "public";

/** Runs `agarose init [FOLDER]`. Files that exist are kept unless `--force` is given. */
export async function init(folder: string | undefined, options: Options): Promise<void> {
  for (const name of ["everywhere", "analytics"] as const) {
    if (options[name] && !options.worker) throw new AgaroseError("USAGE", `--${name} needs --worker`);
  }
  if (options.dryRun && (options.worker || options.devVars || options.remove)) {
    throw new AgaroseError("USAGE", "--dry-run is for the files of an app: leave out the other options");
  }
  if (options.devVars) {
    const { initDevVars } = await import("./dev-vars.ts");
    await initDevVars(folder ?? ".", options);
  } else if (options.worker) {
    const { initWorker } = await import("./worker.ts");
    await initWorker(folder ?? ".", options);
  } else await (options.remove ? remove(folder, options) : initApp(folder, options));
}

/** Writes the removing worker under every name of a worker. Other files stay. */
async function remove(given: string | undefined, options: Options): Promise<void> {
  const { folder } = await placeOf(given, options);
  const { dropInFiles, REMOVING_FILE, WORKER_FILES } = await import("@agarose/sw/files");
  const contents = (await dropInFiles()).get(REMOVING_FILE)!;
  await makeFolder(folder);
  const names = Object.keys(WORKER_FILES).filter((name) => name !== REMOVING_FILE);
  const files = names.map((name): WrittenFile => ({ path: join(folder, name), outcome: "written" }));
  for (const { path } of files) await writeFile(path, contents);
  printResult(options, { files }, [
    ...files.map((file) => `${file.outcome.padEnd(8)} ${file.path}`),
    "deploy these files and remove register() from your pages: browsers pick the worker up on their next visit",
  ]);
}

async function makeFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true }).catch((cause: unknown) => {
    throw new AgaroseError("USAGE", `${folder} cannot be created: ${(cause as Error).message}`, { folder }, cause);
  });
}

/** The folder, and the project that it is the static files of. */
async function placeOf(
  given: string | undefined,
  { prefix }: Options,
): Promise<{ folder: string; project: Project | undefined }> {
  const project = await readProject(".", prefix);
  if (given === undefined) return { folder: project?.folder ?? FOLDER_DEFAULT, project };
  return { folder: given, project: project && resolve(given) === resolve(project.folder) ? project : undefined };
}

async function initApp(given: string | undefined, options: Options): Promise<void> {
  const { prefix, force = false, dryRun = false } = options;
  const { folder, project } = await placeOf(given, options);
  const path = join(folder, CLIENT_CONFIG);
  const ownConfig = configPath(options.config);
  await refuseOwnConfig(path, ownConfig);
  const hasConfig = options.config !== undefined || existsSync(ownConfig);
  const clientConfig = clientConfigOf(hasConfig ? await loadConfig(ownConfig) : undefined);
  if (!dryRun) await makeFolder(folder);
  const { dropInFiles, REMOVING_FILE } = await import("@agarose/sw/files");
  // A plugin serves them from its package, but existing files would stay old.
  const isWanted = (name: string): boolean => !project?.hasPlugin || existsSync(join(folder, name));
  const shipped = [...(await dropInFiles())].filter(([name]) => !name.startsWith(REMOVING_FILE) && isWanted(name));
  const scripts = await Promise.all(
    shipped.map(async ([name, contents]): Promise<WrittenFile> => {
      if (!dryRun) await writeFile(join(folder, name), contents);
      return { path: join(folder, name), outcome: "written" };
    }),
  );
  const config = await initClientConfig(path, clientConfig, { force, dryRun });
  const files = [...scripts, config];
  printResult(options, { dryRun, files, config: clientConfig, ...(project && { project }) }, [
    ...(project ? [`${project.framework}, by ${project.knownBy}: ${folder}/ is served at the root`] : []),
    ...files.map((file) => `${dryRun ? "would be " : ""}${file.outcome.padEnd(8)} ${file.path}`),
    ...(dryRun ? [] : await hintsOf(config, clientConfig)),
    ...(project
      ? [...project.edits.flatMap(linesOf), ...project.notes.map((note) => `note: ${note}`)]
      : [`then: import { register } from "/agarose.js"; await ${registerCall(prefix)};`]),
  ]);
}

/** Files of the app's own are never written: their lines are for a person to paste. */
function linesOf({ path, state, where, lines }: Edit): string[] {
  if (state === "done") return [`${path} names Agarose already`];
  const what = state === "new" ? `make ${path}` : `add to ${path}`;
  return [`${what} (${where}):`, ...lines.map((line) => (line === "" ? "" : `    ${line}`))];
}

/** Writes the client configuration unless there is one, or brings the keys of that one up to date. */
async function initClientConfig(
  path: string,
  wanted: ClientConfig,
  { force, dryRun }: { force: boolean; dryRun: boolean },
): Promise<WrittenFile> {
  if (dryRun && (force || !existsSync(path))) return { path, outcome: "written" };
  const file: WrittenFile = dryRun ? { path, outcome: "kept" } : await writeClientConfig(path, wanted, force);
  const updated = await withKeys(file, wanted);
  if (updated === undefined) return file;
  if (!dryRun) await writeFile(path, `${JSON.stringify(updated, undefined, 2)}\n`);
  return { path, outcome: "updated" };
}

/** Hints for a client configuration that lacks PoPs or regions. */
async function hintsOf({ path, outcome }: WrittenFile, wanted: ClientConfig): Promise<string[]> {
  const isOld = outcome !== "written";
  const actual = isOld ? await countsOf(path) : { pops: wanted.pops.length, regions: wanted.regions.length };
  const named = `${path} names ${formatCount(actual.pops, "PoP")} and ${formatCount(actual.regions, "region")}`;
  const differs = actual.pops !== wanted.pops.length || actual.regions !== wanted.regions.length;
  if (isOld && differs && wanted.pops.length + wanted.regions.length > 0) {
    const own = `${wanted.pops.length} and ${wanted.regions.length}`;
    return [`hint: ${named}, the configuration of the command line ${own}: --force replaces the file`];
  }
  if (actual.pops + actual.regions === 0) return [`fill it in: ${named}, at least 1 is needed`];
  return isOld || wanted.publicKeys || wanted.unsigned
    ? []
    : [`fill it in: ${path} has no publicKeys: \`agarose keys new\` makes one, and init again writes it`];
}

/** A kept file with the public keys of today, without which the app would read nothing; undefined if it has them. */
async function withKeys(
  file: WrittenFile,
  { publicKeys, unsigned }: ClientConfig,
): Promise<Record<string, unknown> | undefined> {
  const kept = await readJson(file.path);
  if (file.outcome !== "kept" || !(publicKeys || unsigned) || !("pops" in kept || "regions" in kept)) return undefined;
  const { publicKeys: _keys, unsigned: _unsigned, ...others } = kept;
  const updated = { ...others, ...(publicKeys && { publicKeys }), ...(unsigned && { unsigned }) };
  return JSON.stringify(updated) === JSON.stringify(kept) ? undefined : updated;
}

/** Anything that is not a JSON object has no fields. */
async function readJson(path: string): Promise<Record<string, unknown>> {
  const text = await readFile(path, "utf8").catch(() => "");
  return Object(jsonIn(text)) as Record<string, unknown>;
}

async function countsOf(path: string): Promise<{ pops: number; regions: number }> {
  const lengthOf = (list: unknown): number => (Array.isArray(list) ? list.length : 0);
  const kept = await readJson(path);
  return { pops: lengthOf(kept["pops"]), regions: lengthOf(kept["regions"]) };
}

async function writeClientConfig(path: string, config: object, force: boolean): Promise<WrittenFile> {
  try {
    await writeFile(path, `${JSON.stringify(config, undefined, 2)}\n`, { flag: force ? "w" : "wx" });
    return { path, outcome: "written" };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return { path, outcome: "kept" };
    throw error;
  }
}

/** A configuration of the command line under its old name must neither be overwritten nor served. */
async function refuseOwnConfig(path: string, own: string): Promise<void> {
  const [target, source] = await Promise.all([path, own].map((file) => realpath(file).catch(() => undefined)));
  if (target === undefined || target !== source) return;
  throw new AgaroseError(
    "USAGE",
    `${path} is the configuration of the command line: name another folder, such as public`,
    { path },
  );
}
