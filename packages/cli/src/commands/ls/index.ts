/**
 * `agarose ls`: lists objects.
 */
import type { Command } from "commander";
import { toAgaroseError } from "@agarose/core";
import { READING, withContext, type CommandContext, type GlobalOptions } from "../../lib/context.ts";
import { listKeys, warnOfFailures } from "../../lib/objects/keys.ts";
import { readManifest } from "../../lib/objects/manifests.ts";
import { formatBytes, printable, printResult } from "../../lib/output.ts";
import { mapPool } from "../../lib/pool.ts";

interface LsOptions extends GlobalOptions {
  readonly long?: boolean;
}

interface LsEntry {
  readonly key: string;
  readonly modified: string;
  readonly bytes?: number;
  readonly contentType?: string;
  readonly version?: string;
  /** Why its manifest cannot be used. */
  readonly problem?: string;
}

const MANIFESTS_AT_A_TIME = 16;

export function register(program: Command): void {
  program
    .command("ls")
    .description("list the keys that begin with a prefix")
    .argument("[prefix]", "all keys when left out", "")
    .option("-l, --long", "also length, type and version, from the manifests")
    .action((prefix: string, _options: unknown, command: Command) => ls(prefix, command.optsWithGlobals<LsOptions>()));
}

async function ls(prefix: string, options: LsOptions): Promise<void> {
  await withContext(options, READING, async (context) => {
    const listing = await listKeys(prefix, context);
    const keys = [...listing.keys].map(([key, ms]) => ({ key, modified: new Date(ms).toISOString() }));
    const objects: LsEntry[] = options.long
      ? await mapPool(keys, MANIFESTS_AT_A_TIME, (entry) => describe(entry, context))
      : keys;
    const { regionsFailed, complete } = listing;
    printResult(context.json, { objects, regionsFailed, complete }, objects.map(lineOf));
    warnOfFailures(listing);
  });
}

async function describe(entry: LsEntry, { stores, signal, trust }: CommandContext): Promise<LsEntry> {
  try {
    const { bytes, contentType, version } = await readManifest(entry.key, stores, signal, trust);
    return { ...entry, bytes, contentType, version };
  } catch (error) {
    signal.throwIfAborted();
    return { ...entry, problem: toAgaroseError(error).code };
  }
}

function lineOf({ key, modified, bytes, contentType, version, problem }: LsEntry): string {
  if (problem) return `${modified}  ${problem}  ${printable(key)}`;
  if (bytes === undefined) return printable(key);
  return `${modified}  ${formatBytes(bytes).padStart(10)}  ${version}  ${contentType}  ${printable(key)}`;
}
