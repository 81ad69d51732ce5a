/** The files of a project, from its answers and the templates of this package. */
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { AREAS } from "./areas.ts";
import type { Answers } from "./answers.ts";
import { geographyOf } from "./geography.ts";

/** How the project gets the packages. */
export interface ProjectOptions {
  /** Version of the packages. */
  readonly version: string;
  /** A folder of tarballs to install the packages from. Default: the registry. */
  readonly packages?: string | undefined;
}

const TEMPLATE = fileURLToPath(new URL("../template", import.meta.url));
/** TypeScript and `.gitignore` do not travel in packages, so the templates have this ending. */
const ENDING = ".template";
/** All packages, because those that are installed from tarballs find each other only that way. */
const PACKAGES = ["core", "solver", "ec-wasm", "storage", "s3-server", "worker", "pop"].map(
  (name) => `@agarose/${name}`,
);
/** The fixed code by how many of six regions may be lost: each has two of twelve chunks. */
const CODES: Readonly<Record<string, { readonly k: number; readonly m: number }>> = {
  "1": { k: 9, m: 3 },
  "2": { k: 8, m: 4 },
};

/** The content of each file by its path, with `/`. */
export async function projectFiles(answers: Answers, options: ProjectOptions): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(TEMPLATE, { recursive: true })).filter((name) => name.endsWith(ENDING)).toSorted();
  const { regions, isDefaultWorld = false } = areaOf(answers);
  const world = worldFields(answers);
  const files = new Map<string, string>();
  for (const name of names) {
    const text = await readFile(join(TEMPLATE, name), "utf8");
    const path = name.slice(0, -ENDING.length).replaceAll("\\", "/");
    const filled = text.replaceAll("{{name}}", answers.name).replaceAll("{{region}}", regions[0]!.name);
    files.set(path, filled.replaceAll("{{world}}", world));
  }
  const own = JSON.parse(files.get("package.json")!) as PackageFields;
  files.set("package.json", json(packageFields(own, answers, options)));
  files.set("agarose.config.json", json(commandLineConfig(answers)));
  if (!isDefaultWorld) files.set("geography.json", json(geographyOf(areaOf(answers), CODES[answers.survive]!)));
  return files;
}

/**
 * The options of the local world after `app`: its places, and a code that survives as many regions as the
 * project asks for. The local world promises one, so its `auto` does not do for two.
 */
function worldFields(answers: Answers): string {
  const { k, m } = CODES[answers.survive]!;
  const fields = [
    !areaOf(answers).isDefaultWorld && 'geography: "geography.json"',
    answers.survive === "2" ? `code: { k: ${k}, m: ${m} }` : 'code: "auto"',
  ];
  return `, ${fields.filter(Boolean).join(", ")}`;
}

interface PackageFields {
  readonly scripts: Readonly<Record<string, string>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

function packageFields(own: PackageFields, { workers }: Answers, { version, packages }: ProjectOptions): object {
  const source = (name: string): string =>
    packages === undefined
      ? version
      : `file:${resolve(packages, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`)}`;
  const all = (names: readonly string[]): Record<string, string> =>
    Object.fromEntries(names.map((name) => [name, source(name)]));
  const worker = `agarose init --worker${workers === "everywhere" ? " --everywhere" : ""}`;
  return {
    ...own,
    scripts: { ...own.scripts, setup: `agarose keys new && ${worker}` },
    dependencies: { ...all(["@agarose/sw"]), ...own.dependencies },
    devDependencies: {
      ...all(["agarose", "@agarose/dev-world", ...(packages === undefined ? [] : PACKAGES)]),
      ...own.devDependencies,
    },
  };
}

function commandLineConfig(answers: Answers): object {
  const { regions, pops } = areaOf(answers);
  const workers = answers.workers === "everywhere" ? [{ name: "all" }] : pops;
  return {
    $schema: "./node_modules/agarose/config-schema.json",
    regions: regions.map((region) => ({
      ...region,
      bucket: `${answers.buckets}-${region.provider === "aws" ? region.awsRegion : region.name}`,
    })),
    code: "auto",
    survive: { regions: Number(answers.survive), providers: 0 },
    pops: workers.map((worker) => ({ url: `https://agarose-${worker.name}.example.workers.dev`, ...worker })),
  };
}

function areaOf({ readers }: Answers): (typeof AREAS)[string] {
  return AREAS[readers]!;
}

function json(value: object): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
