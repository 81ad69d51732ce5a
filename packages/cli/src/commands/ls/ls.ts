/** `agarose ls`: lists objects. */
import { toAgaroseError } from "@agarose/core";
import { shownBytes } from "@agarose/core/content";
import { isTombstone } from "@agarose/core/format";
import { READING, withReport, type CommandContext } from "../../lib/context.ts";
import { KeyListing, liveGroups } from "@agarose/storage/listing/keys";
import { shownManifest } from "@agarose/storage/encryption/secrets-of";
import { KnownRegions } from "@agarose/storage/regions/known-regions";
import { readManifest, type ReadHow } from "@agarose/storage/objects/manifests";
import { EXIT_OK, formatBytes, logLine, printable } from "../../ui/output.ts";
import { modifiedOf, type KeyGroup } from "@agarose/storage/listing/key-groups";
import { majorityRecord } from "@agarose/storage/listing/listed-object";
import { mapOrdered } from "@agarose/storage/listing/adaptive-pool";
import type { Values } from "../../command.ts";
import type { args } from "./index.ts";

interface LsEntry {
  readonly key: string;
  readonly modified: string;
  readonly bytes?: number;
  /** Its length as it is stored, before it is coded. Set where that is compressed. */
  readonly compressedBytes?: number;
  readonly contentType?: string;
  readonly version?: string;
  /** Why its manifest cannot be used. */
  readonly problem?: string;
}

const MANIFESTS_AT_A_TIME = 16;

/** Runs `agarose ls [PREFIX]`. Keys come in the order of their encoded names; lengths are in bytes. */
export function ls({ prefix, ...options }: Values<typeof args>): Promise<number> {
  return withReport(options, READING, async (report, context) => {
    const { consistency } = options;
    const knownRegions = new KnownRegions(context, false);
    const how = { consistency, knownRegions };
    const listing = new KeyListing(prefix, context, { after: options.after });
    const entries = mapOrdered(liveGroups(listing, context, how), MANIFESTS_AT_A_TIME, async (group) => {
      const entry = { key: group.key, modified: modifiedOf(group) };
      return options.long ? describe(entry, group, context, how) : entry;
    });
    for await (const entry of entries) await report.item(entry, [lineOf(entry)]);
    const { regionsFailed, complete } = listing;
    if (consistency === "strong") listing.requireComplete();
    await knownRegions.flush();
    await report.end({ regionsFailed, complete }, []);
    listing.warn(logLine);
    return EXIT_OK;
  });
}

async function describe(entry: LsEntry, group: KeyGroup, context: CommandContext, how: ReadHow): Promise<LsEntry> {
  const { config, signal } = context;
  try {
    const listed = how.consistency === "strong" ? await majorityRecord(group, context) : undefined;
    const manifest = listed && !isTombstone(listed) ? listed : await readManifest(entry.key, context, how);
    // Without the secret, the type is what everyone sees.
    const { contentType, version } = await shownManifest(manifest, config).catch(() => manifest);
    const compressed = manifest.gzip && { compressedBytes: manifest.bytes };
    return { ...entry, bytes: shownBytes(manifest), ...compressed, contentType, version };
  } catch (error) {
    signal.throwIfAborted();
    return { ...entry, problem: toAgaroseError(error).code };
  }
}

function lineOf({ key, modified, bytes, compressedBytes, contentType, version, problem }: LsEntry): string {
  if (problem) return `${modified}  ${problem}  ${printable(key)}`;
  if (bytes === undefined) return printable(key);
  const compressed = compressedBytes === undefined ? "" : ` (${formatBytes(compressedBytes)} compressed)`;
  return `${modified}  ${formatBytes(bytes).padStart(10)}${compressed}  ${version}  ${contentType}  ${printable(key)}`;
}
