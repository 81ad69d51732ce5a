/**
 * `agarose rm`: removes objects, their manifests first and then the chunks of all their versions.
 */
import type { Command } from "commander";
import { AgaroseError, CHUNK_PREFIX, encodeKey, manifestName, parseKey, toAgaroseError } from "@agarose/core";
import { withContext, WRITING, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { listKeys } from "../../lib/objects/keys.ts";
import { EXIT_FAILED, EXIT_OK, formatCount, logLine, printable, printResult } from "../../lib/output.ts";
import { mapPool } from "../../lib/pool.ts";
import type { Store } from "../../lib/store/store.ts";

interface RmOptions extends GlobalOptions {
  readonly prefix?: boolean;
}

interface Leftover {
  readonly region: string;
  readonly name: string;
  readonly problem: string;
}

interface RmReport {
  readonly key: string;
  readonly manifestsRemoved: number;
  readonly chunksRemoved: number;
  /** What could not be removed. When a manifest could not, the chunks are kept, so that the object still reads. */
  readonly leftovers: readonly Leftover[];
}

const OBJECTS_AT_A_TIME = 4;

export function register(program: Command): void {
  program
    .command("rm")
    .description("remove objects with all their versions")
    .argument("<key...>", "keys of the objects")
    .option("--prefix", "take each key as a prefix and remove every object whose key begins with it")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await rm(keys, command.optsWithGlobals<RmOptions>());
    });
}

async function rm(names: readonly string[], options: RmOptions): Promise<number> {
  if (!options.prefix) names.forEach(parseKey);
  return withContext(options, WRITING, async (context) => {
    const keys = options.prefix ? await keysBelow(names, context) : names;
    const reports = await mapPool(keys, OBJECTS_AT_A_TIME, (key) => removeObject(key, context.stores));
    if (!options.prefix) refuseUnknown(reports);
    const lines = reports.map(
      ({ key, manifestsRemoved, chunksRemoved }) =>
        `removed  ${printable(key)}  ${formatCount(manifestsRemoved, "manifest")}, ${formatCount(chunksRemoved, "chunk")}`,
    );
    printResult(context.json, { objects: reports }, lines);
    const leftovers = reports.flatMap((report) => report.leftovers);
    for (const { region, name, problem } of leftovers) logLine(`left     ${region} ${printable(name)}: ${problem}`);
    return leftovers.length > 0 ? EXIT_FAILED : EXIT_OK;
  });
}

async function keysBelow(prefixes: readonly string[], { config, stores, signal }: CommandContext): Promise<string[]> {
  const listings = await Promise.all(prefixes.map((prefix) => listKeys(prefix, config, stores, signal)));
  return [...new Set(listings.flatMap(({ keys }) => [...keys.keys()]))];
}

async function removeObject(key: string, stores: readonly Store[]): Promise<RmReport> {
  const name = manifestName(key);
  const manifests = await Promise.all(stores.map((store) => removeAll(store, () => namesThatExist(store, name))));
  const manifestsLeft = manifests.flatMap(({ leftovers }) => leftovers);
  const chunks =
    manifestsLeft.length > 0
      ? []
      : await Promise.all(stores.map((store) => removeAll(store, () => chunksOf(store, key))));
  return {
    key,
    manifestsRemoved: sum(manifests.map(({ removed }) => removed)),
    chunksRemoved: sum(chunks.map(({ removed }) => removed)),
    leftovers: [...manifestsLeft, ...chunks.flatMap(({ leftovers }) => leftovers)],
  };
}

async function removeAll(
  store: Store,
  find: () => Promise<string[]>,
): Promise<{ removed: number; leftovers: Leftover[] }> {
  const region = store.region.name;
  try {
    const names = await find();
    const failed = names.length > 0 ? await store.remove(names) : [];
    return { removed: names.length - failed.length, leftovers: failed.map((failure) => ({ region, ...failure })) };
  } catch (error) {
    return { removed: 0, leftovers: [{ region, name: "", problem: toAgaroseError(error).message }] };
  }
}

async function namesThatExist(store: Store, name: string): Promise<string[]> {
  return (await store.head(name)) === undefined ? [] : [name];
}

async function chunksOf(store: Store, key: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of store.list(`${CHUNK_PREFIX}${encodeKey(key)}@`)) names.push(name);
  return names;
}

function refuseUnknown(reports: readonly RmReport[]): void {
  const unknown = reports.find(
    ({ manifestsRemoved, chunksRemoved, leftovers }) => manifestsRemoved + chunksRemoved + leftovers.length === 0,
  );
  if (!unknown) return;
  const { key } = unknown;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    `no region holds anything of ${JSON.stringify(key)}: check it with \`agarose ls\``,
    {
      key,
    },
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
