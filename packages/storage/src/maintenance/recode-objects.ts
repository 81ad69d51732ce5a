/**
 * One walk over the keys below a prefix that stores objects again where their code or placement is not what the
 * configuration says: `recode`, and the second step of `migrate`.
 */
import { AgaroseError, toAgaroseError } from "@agarose/core";
import { chunkBytes, type Code, type Manifest } from "@agarose/core/format";
import { currentNames, hasFormerName } from "../buckets/region-names.ts";
import type { Config, RegionConfig } from "../config/config.ts";
import { layoutOf, type ObjectLayout } from "../layout/object-layout.ts";
import type { KeyGroup } from "../listing/key-groups.ts";
import { currentManifest } from "../listing/listed-object.ts";
import { walkObjects, type Walk, type WalkOptions } from "../listing/walk-objects.ts";
import type { PutResult } from "../objects/put-object.ts";
import type { DeploymentParts } from "../parts.ts";
import { repairOne } from "../repair/repair-outcome.ts";
import { addNumbers } from "./add-numbers.ts";
import { formatCount } from "./amounts.ts";
import { isLaidOut, recodeObject } from "./recode-object.ts";
import { renameRegions } from "./rename.ts";

/** The task. */
export interface RecodeOptions extends WalkOptions, Pick<RecodeHow, "dryRun" | "moves"> {
  /** Says in the cursor file what this walk does. */
  readonly name: string;
  /** The configuration of a key. Default: that of the deployment. */
  readonly configOf?: (key: string) => Config;
  /** Called with each object that was not stored as it should be. */
  readonly onOutcome: (outcome: RecodeOutcome) => Promise<void>;
}

/** Sums over the objects that are listed. */
export interface RecodeTotals extends Effort {
  readonly objects: number;
  /** Stored again, or with `dryRun` to be. */
  readonly recoded: number;
  /** With `moves`: those whose manifest was copied, or is to be. */
  readonly completed?: number;
  readonly failed: number;
}

const OBJECTS_AT_A_TIME = 2;
const OBJECTS_AT_A_TIME_DRY = 16;

/**
 * Walks once. A failure of one object is an outcome. A dry run writes nothing.
 *
 * @throws LAYOUT_UNSAFE before anything else happens, and as `walkObjects` does.
 */
export async function recodeObjects(options: RecodeOptions, context: DeploymentParts): Promise<RecodeTotals> {
  const { name, dryRun = false, moves = false, configOf = () => context.config, onOutcome } = options;
  layoutOf(context.config, options.prefix ?? "", 0);
  const none: RecodeTotals = { objects: 0, recoded: 0, ...(moves && { completed: 0 }), failed: 0, ...NO_EFFORT };
  const walk: Walk<RecodeOutcome, RecodeTotals> = {
    name: `${name}${dryRun ? " dry" : ""} ${JSON.stringify(context.config.code)}`,
    options,
    objectsAtATime: dryRun ? OBJECTS_AT_A_TIME_DRY : OBJECTS_AT_A_TIME,
    act: (key, group) => recodeListed(group!, context, { dryRun, moves, config: configOf(key) }),
    add,
    onResult: (outcome) => (outcome.outcome === "current" ? Promise.resolve() : onOutcome(outcome)),
  };
  return walkObjects(walk, none, context);
}

function add(totals: RecodeTotals, result: RecodeOutcome): RecodeTotals {
  if (result.outcome === "failed") return addNumbers(totals, { objects: 1, failed: 1 });
  if (result.outcome === "current") return addNumbers(totals, { objects: 1 });
  const isRecoded = result.outcome === "recoded" || result.outcome === "due";
  return addNumbers(totals, { ...result.effort, objects: 1, [isRecoded ? "recoded" : "completed"]: 1 });
}

/** The outcome of one object. */
export type RecodeOutcome = { readonly key: string } & (
  | { readonly outcome: "current" }
  /** Its manifest was copied into regions that lacked it, or with `dryRun` is to be. */
  | { readonly outcome: "completed" | "incomplete"; readonly effort: Effort }
  /** It was rewritten, or with `dryRun` is to be. Codes are as `9+3`, or `inline`. */
  | { readonly outcome: "recoded" | "due"; readonly from: string; readonly to: string; readonly effort: Effort }
  | { readonly outcome: "failed"; readonly error: AgaroseError }
);

/** Work in addition to recoding. */
interface RecodeHow {
  /** Whether to say what there is to do in place of doing it. Default: false. */
  readonly dryRun?: boolean;
  /** Whether every region has to have the manifest, with the names that regions have now. Default: false. */
  readonly moves?: boolean;
  /** The configuration of the object. Default: that of the deployment. */
  readonly config?: Config;
}

/** Undefined for an object that was removed, unless `moves`. A failure is an outcome. Rejects only when aborted. */
async function recodeListed(
  group: KeyGroup,
  context: DeploymentParts,
  { dryRun = false, moves = false, config = context.config }: RecodeHow = {},
): Promise<RecodeOutcome | undefined> {
  const { key } = group;
  try {
    const before = await currentManifest(group, context, { isReadOnly: dryRun });
    if (!before) return moves ? await complete(group, undefined, dryRun, context) : undefined;
    const layout = layoutOf(config, before.key, before.bytes);
    if ((moves || dryRun) && (await isLaidOut(before, layout, config))) {
      return moves ? await complete(group, before, dryRun, context) : { key, outcome: "current" };
    }
    const change = { from: codeText(before), to: codeText(layout), effort: effortOf(before, layout, config) };
    if (dryRun) return { key, outcome: "due", ...change };
    const result = await recodeObject(key, { ...context, config });
    if (moves && result) requireWhole(result);
    return result ? { key, outcome: "recoded", ...change } : { key, outcome: "current" };
  } catch (error) {
    context.signal.throwIfAborted();
    return { key, outcome: "failed", error: toAgaroseError(error) };
  }
}

/** Gives every region the manifest or tombstone of a key, and the manifest the names that regions have now. */
async function complete(
  { key, manifests }: KeyGroup,
  manifest: Manifest | undefined,
  dryRun: boolean,
  context: DeploymentParts,
): Promise<RecodeOutcome> {
  const hasOldName = manifest !== undefined && hasFormerName(manifest, context.config.regions);
  const missing = context.stores.length - manifests.length;
  const isEverywhere = missing === 0 && manifests.every(({ etag }) => etag && etag === manifests[0]!.etag);
  if (isEverywhere && !hasOldName) return { key, outcome: "current" };
  const planned = hasOldName ? COMMIT_REQUESTS * context.stores.length : missing;
  const cameOf = (outcome: "completed" | "incomplete", requests: number): RecodeOutcome =>
    requests > 0 ? { key, outcome, effort: { ...NO_EFFORT, requests } } : { key, outcome: "current" };
  if (dryRun) return cameOf("incomplete", planned);
  const isRenamed = hasOldName && (await renameRegions(key, context));
  const written = await copyManifests(key, context);
  return cameOf("completed", isRenamed ? planned : written);
}

/** Returns how many regions took a manifest. */
async function copyManifests(key: string, context: DeploymentParts): Promise<number> {
  const result = await repairOne(key, context, { quick: true });
  if (result.outcome === "failed") throw result.error;
  const silent = result.after.manifests.flatMap(({ region, state }) => (state === "unreachable" ? [region] : []));
  if (silent.length > 0) {
    const message = `${silent.join(", ")} did not answer for ${JSON.stringify(key)}: move again when they do`;
    throw new AgaroseError("STORE_FAILED", message, { key, regions: silent });
  }
  if (result.outcome === "damaged") {
    const message = `${JSON.stringify(key)} is damaged: look at it with \`agarose verify\`, and repair it first`;
    throw new AgaroseError("NOT_ENOUGH_CHUNKS", message, { key });
  }
  return result.manifestsWritten;
}

/** Throws STORE_FAILED for an object that some regions have not got: its put has succeeded, a migration has not. */
function requireWhole({ key, regionsWithoutManifest, missing }: PutResult): void {
  const regions = regionsWithoutManifest.map(({ region }) => region);
  if (regions.length === 0 && missing.length === 0) return;
  const message =
    `${JSON.stringify(key)} is stored, but ${formatCount(regions.length, "region")} (${regions.join(", ")}) lack its manifest ` +
    `and ${formatCount(missing.length, "chunk")} are missing: run the command again when all regions answer`;
  throw new AgaroseError("STORE_FAILED", message, { key, regions, chunks: missing });
}

function codeText({ k, m, inline }: Code & { readonly inline?: unknown }): string {
  return inline === true || typeof inline === "string" ? "inline" : `${k}+${m}`;
}

/** Sums over objects. */
interface Effort {
  /** Bytes of objects that are read, without requests that are made twice because a region is slow. */
  readonly readBytes: number;
  /** Bytes of chunks that are written. */
  readonly writtenBytes: number;
  /** Requests to regions, the fewest that it takes. */
  readonly requests: number;
  /** For reading, by `egressUsdPerGb`, if the dearest chunks are read: no more than this. Requests are not priced. */
  readonly readUsdMax: number;
  /** How much more, or less, the chunks cost to store, by `storageUsdPerGbMonth`. */
  readonly usdPerMonth: number;
}

const NO_EFFORT: Effort = { readBytes: 0, writtenBytes: 0, requests: 0, readUsdMax: 0, usdPerMonth: 0 };

/** To each region: a look, a claim, a manifest, and the removal of the claim. */
const COMMIT_REQUESTS = 4;
const GB = 1e9;
/** A read asks a region for so much of an object in one request at most. */
const READ_BYTES_MAX = 16 * 1024 * 1024;

function effortOf(manifest: Manifest, layout: ObjectLayout, { regions, stripeBytes }: Config): Effort {
  const { bytes, inline, k } = manifest;
  const placement = currentNames(manifest.placement, regions);
  const isStored = bytes > 0 && inline === undefined;
  const before = isStored ? chunkBytes(manifest) : 0;
  const written = bytes > 0 && !layout.inline ? chunkBytes({ k: layout.k, bytes, stripeBytes }) : 0;
  const reads = isStored ? k * Math.ceil(bytes / READ_BYTES_MAX) : 0;
  const writes = written > 0 ? layout.placement.length : 0;
  const prices = new Map(regions.map((region) => [region.name, region]));
  const egress = placement.map((name) => prices.get(name)?.egressUsdPerGb ?? 0).toSorted((a, b) => b - a);
  const storage = (names: readonly string[], each: number): number =>
    names.reduce((sum, name) => sum + (each / GB) * storagePrice(prices.get(name)), 0);
  return {
    readBytes: isStored ? bytes : 0,
    writtenBytes: written * layout.placement.length,
    requests: reads + writes + COMMIT_REQUESTS * regions.length,
    readUsdMax: egress.slice(0, k).reduce((sum, usd) => sum + (before / GB) * usd, 0),
    usdPerMonth: storage(layout.placement, written) - storage(placement, before),
  };
}

function storagePrice(region: RegionConfig | undefined): number {
  return region?.storageUsdPerGbMonth ?? 0;
}
