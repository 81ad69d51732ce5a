/** The files of a project, from its answers and the templates of this package. */
import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { AREAS, COORDINATES, type Area, type Place } from "./areas.ts";
import type { Answers } from "./answers.ts";

/** How the project gets the packages. */
export interface ProjectOptions {
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

/** Until the first byte of a store beside the reader, in milliseconds. */
const STORE_MS = 15;
/** Until the first byte of a PoP's cache, in milliseconds. */
const CACHE_MS = 5;
/**
 * A round trip of each kilometre as the crow flies, in milliseconds. Light in fibre takes 0.01; routes are longer than
 * the great circle, here by half.
 */
const ROUND_TRIP_MS_PER_KM = 0.015;
const EARTH_RADIUS_KM = 6371;
/** A few objects of the size of a photograph, so that a cache has a choice to make. */
const CACHE_BYTES = 3_000_000;

/** A scenario for `agarose dev --scenario`. Latencies are estimates by distance, not measurements. */
function geographyOf({ regions, pops }: Area, code: { readonly k: number; readonly m: number }): object {
  return {
    name: "the places of this project",
    about: "latencies by distance: estimates, not measurements",
    code,
    objects: { count: 100, bytes: 400_000 },
    regions: regions.map(({ name }) => name),
    pops: pops.map((pop) => ({
      name: pop.name,
      regionLatencyMs: Object.fromEntries(
        regions.map((region) => [region.name, STORE_MS + roundTripMs(pop, region.awsRegion)]),
      ),
      cacheLatencyMs: CACHE_MS,
      peerLatencyMs: Object.fromEntries(
        pops.filter((peer) => peer !== pop).map((peer) => [peer.name, CACHE_MS + roundTripMs(pop, regionBeside(peer))]),
      ),
      capacityBytes: CACHE_BYTES,
      regionMbitPerSecond: 200,
    })),
    noise: { lognormalSigma: 0.1 },
    popularity: { type: "zipf", exponent: 1 },
    requests: { perSecond: 10, count: 10_000 },
    policies: [{ name: "backend" }, { name: "lru" }, { name: "adaptive" }],
  };
}

/** Whole milliseconds between a PoP and a region of AWS. */
function roundTripMs(from: Place, to: string): number {
  return Math.round(ROUND_TRIP_MS_PER_KM * distanceKm(COORDINATES[regionBeside(from)]!, COORDINATES[to]!));
}

function regionBeside({ placement }: Place): string {
  return placement.replace("aws:", "");
}

/** Along the great circle, by the haversine formula. */
function distanceKm(from: readonly [number, number], to: readonly [number, number]): number {
  const [lat1, lon1, lat2, lon2] = [...from, ...to].map((degrees) => (degrees * Math.PI) / 180) as [
    number,
    number,
    number,
    number,
  ];
  const half = Math.sin((lat2 - lat1) / 2) ** 2 + Math.cos(lat1) * Math.cos(lat2) * Math.sin((lon2 - lon1) / 2) ** 2;
  return 2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(half));
}
