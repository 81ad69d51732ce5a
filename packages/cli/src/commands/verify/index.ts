/**
 * `agarose verify`: reads every stored byte of objects and says what is damaged and what still reads.
 */
import type { Command } from "commander";
import { AgaroseError, parseKey } from "@agarose/core";
import { READING, withContext, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { listKeys } from "../../lib/objects/keys.ts";
import { warn } from "../ls/index.ts";
import { EXIT_FAILED, EXIT_OK, printable, printResult } from "../../lib/output.ts";
import { mapPool } from "../../lib/pool.ts";
import { verifyObject, type ObjectVerdict } from "../../lib/objects/verify-object.ts";

interface VerifyOptions extends GlobalOptions {
  readonly prefix?: string;
}

const OBJECTS_AT_A_TIME = 2;

export function register(program: Command): void {
  program
    .command("verify")
    .description("check every manifest and every byte of every chunk; exit 1 when something is damaged")
    .argument("[key...]", "keys of objects; all objects when left out")
    .option("--prefix <prefix>", "all objects whose keys begin with this")
    .action(async (keys: string[], _options: unknown, command: Command) => {
      process.exitCode = await verify(keys, command.optsWithGlobals<VerifyOptions>());
    });
}

async function verify(keys: readonly string[], options: VerifyOptions): Promise<number> {
  return withContext(options, READING, async (context) => {
    const { stores, signal } = context;
    const names = await namedKeys(keys, options.prefix, context);
    const verdicts = await mapPool(names, OBJECTS_AT_A_TIME, (key) => verifyObject(key, stores, signal));
    if (keys.length > 0) refuseUnknown(verdicts);
    const damaged = verdicts.filter(({ sound }) => !sound).length;
    const unreadable = verdicts.filter(({ readable }) => !readable).length;
    const summary = `${verdicts.length} objects, ${damaged} damaged, ${unreadable} unreadable`;
    const result = { objects: verdicts, damaged, unreadable };
    printResult(context.json, result, [...verdicts.flatMap(linesOf), summary]);
    return damaged > 0 ? EXIT_FAILED : EXIT_OK;
  });
}

/** The keys given, or all that begin with `prefix`. Throws USAGE, KEY_INVALID or KEY_TOO_LONG. */
export async function namedKeys(
  keys: readonly string[],
  prefix: string | undefined,
  { config, stores, signal }: CommandContext,
): Promise<readonly string[]> {
  if (keys.length > 0 && prefix !== undefined) throw new AgaroseError("USAGE", "give either keys or --prefix");
  if (keys.length > 0) return keys.map(parseKey);
  const listing = await listKeys(prefix ?? "", config, stores, signal);
  warn(listing);
  return [...listing.keys.keys()];
}

/** Refuses a key of which no region knows anything, with OBJECT_NOT_FOUND. */
export function refuseUnknown(verdicts: readonly ObjectVerdict[]): void {
  const unknown = verdicts.find(({ manifests }) => manifests.every(({ state }) => state === "missing"));
  if (!unknown) return;
  const { key } = unknown;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    `no region has a manifest of ${JSON.stringify(key)}: check it with \`agarose ls\``,
    {
      key,
    },
  );
}

/** A verdict for people: the state of the object, then what is wrong with it. */
export function linesOf({ key, sound, readable, chunks, chunksSound, manifests, damage }: ObjectVerdict): string[] {
  const state = (sound ? "sound" : readable ? "damaged" : "unreadable").padEnd(10);
  const lines = [`${state}  ${printable(key)}  ${chunksSound} of ${chunks} chunks`];
  for (const { region, state: manifest, problem } of manifests) {
    if (manifest !== "sound") lines.push(`  manifest in ${region}: ${manifest}${problem ? ` (${problem})` : ""}`);
  }
  for (const { chunk, region, code, stripes } of damage) {
    lines.push(
      `  chunk ${chunk} in ${region}: ${code} (stripes ${stripes.slice(0, 8).join(", ")}${stripes.length > 8 ? ", …" : ""})`,
    );
  }
  return lines;
}
