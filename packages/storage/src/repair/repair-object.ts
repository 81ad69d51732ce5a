/** Restores a damaged object from what is left of it. */
import { AgaroseError } from "@agarose/core";
import {
  chunkBytes,
  encodeManifest,
  isTombstone,
  LEAF_LIST,
  stripeCount,
  type Manifest,
  type ManifestRecord,
} from "@agarose/core/format";
import { storeNamed } from "../buckets/region-names.ts";
import type { Store } from "../buckets/store.ts";
import { findGoneChunks, listChunks, placementNow, type ListedChunk } from "../objects/chunk-listing.ts";
import { commitAgainIfNewest, maySeal } from "../commit/commit.ts";
import { writeRecord } from "../commit/manifest-write.ts";
import { holds, surveyRegions, type RegionManifest, type Survey } from "../regions/region-survey.ts";
import { dequeueRepair } from "../commit/repair-queue.ts";
import { majorityOf, type WriteContext } from "../commit/write-context.ts";
import { isRewritable, checkLeafLists, restoreLeafLists } from "../leaf-lists/leaf-lists.ts";
import type { DeploymentParts } from "../parts.ts";
import { uploadChunks } from "../upload/upload.ts";
import {
  checkChunk,
  checkExtra,
  checkManifests,
  damageOf,
  damageOfLists,
  isDamage,
  manifestVerdicts,
  verdictOfChunks,
  verdictWithoutChunks,
  verifyObject,
  type ChunkDamage,
  type ObjectVerdict,
} from "../objects/verify-object.ts";
import { SalvageReader, type SalvagePlan } from "./salvage-reader.ts";
import { md5In } from "../listing/listed-object.ts";

/** How closely a repair looks, and what it can store. */
export interface RepairHow {
  /** Whether to find damage by what the regions list only. Then no chunk of a sound object is read. */
  readonly quick?: boolean;
  /** The longest chunk that this runtime stores. Objects with longer ones are refused unread. Default: no limit. */
  readonly chunkBytesMax?: number;
}

/** Findings, writes and remaining damage of a repair. Counts are of chunks and manifests written, over all regions. */
export interface RepairReport {
  /** The findings. */
  readonly before: ObjectVerdict;
  readonly chunksWritten: number;
  readonly manifestsWritten: number;
  /** The state after the repair; the same as `before` when there was nothing to repair. */
  readonly after: ObjectVerdict;
}

/**
 * Makes the chunks that are missing or wrong from k others, then writes the newest manifest or tombstone to the regions
 * that have an older one or none. It never writes over a newer one.
 *
 * It reads at most k + 2 chunks. Of those beyond, it compares the MD5 that the store reports with the one they must
 * have. A large object with damage that no listing shows is read once more.
 *
 * @throws NO_QUORUM, MANIFEST_UNTRUSTED when a majority holds what no trusted key has signed, MANIFEST_NEWER,
 *   NOT_ENOUGH_CHUNKS when the object cannot be read any more, STORE_FAILED when a chunk cannot be stored or is too
 *   long, KEYS_OUTDATED or REGION_MISPLACED before it writes anything.
 */
export async function repairObject(key: string, context: DeploymentParts, how: RepairHow = {}): Promise<RepairReport> {
  const { newest, regions } = await surveyRegions(key, context);
  refuseStrangers(key, regions);
  const verdicts = manifestVerdicts(regions, newest);
  if (!newest) {
    // Nothing is left of it, so an entry of the queue has nothing to ask for.
    if (regions.every(({ state }) => state === "absent")) await dequeueRepair(key, Number.POSITIVE_INFINITY, context);
    const before = verdictWithoutChunks(key, newest, verdicts);
    return { before, chunksWritten: 0, manifestsWritten: 0, after: before };
  }
  if (!isTombstone(newest)) refuseLongChunks(newest, how);
  const { damage, written, lists } = isTombstone(newest) ? NOTHING : await rescueAll(newest, context, how);
  const before = isTombstone(newest)
    ? verdictWithoutChunks(key, newest, verdicts)
    : verdictOfChunks(newest, verdicts, [...damage, ...(await checkExtra(newest, how.quick ?? false, context))]);
  const isIncomplete = !isTombstone(newest) && newest.missing !== undefined;
  if (before.sound && !isIncomplete) {
    await dequeueRepair(key, newest.generation, context);
    return { before, chunksWritten: 0, manifestsWritten: 0, after: before };
  }
  const manifestsWritten = await rewriteManifests(newest, before, context);
  const after = await look(before, newest, { written, lists }, context);
  if (after.sound) await dequeueRepair(key, newest.generation, context);
  return { before, chunksWritten: written.length + lists.length, manifestsWritten, after };
}

/**
 * A few forgeries are replaced. What a majority holds may be of a put that succeeded, by a key that this machine does
 * not trust yet. MANIFEST_UNTRUSTED.
 */
function refuseStrangers(key: string, regions: readonly RegionManifest[]): void {
  const untrusted = regions.filter(({ state }) => state === "untrusted");
  const most = Math.max(0, ...untrusted.map(({ bytes }) => untrusted.filter((one) => holds(one, bytes!)).length));
  if (most < majorityOf(regions)) return;
  throw new AgaroseError(
    "MANIFEST_UNTRUSTED",
    `${most} of ${regions.length} regions hold one manifest of ${JSON.stringify(key)} that no trusted key has signed: ` +
      "nothing is repaired; add the key that has signed it to `publicKeys`, vouch for it with `agarose keys apply`, or " +
      "put the object again",
    { key, regions: most },
    untrusted[0]!.problem,
  );
}

/** A repair that could store nothing would read the object in vain, and again in each walk. STORE_FAILED. */
function refuseLongChunks(manifest: Manifest, { chunkBytesMax = Number.POSITIVE_INFINITY }: RepairHow): void {
  const bytes = manifest.inline === undefined ? chunkBytes(manifest) : 0;
  if (bytes <= chunkBytesMax) return;
  const { key } = manifest;
  const message = `a chunk of ${JSON.stringify(key)} has ${bytes} bytes, and ${chunkBytesMax} can be stored here: run \`agarose scrub\` on a machine`;
  throw new AgaroseError("STORE_FAILED", message, { key, bytes, limit: chunkBytesMax });
}

/** The repair of the chunks of one upload. */
export interface Rescue {
  /** The findings. */
  readonly damage: readonly ChunkDamage[];
  /** The chunks that were made again. */
  readonly written: readonly number[];
  /** The regions whose leaf list was written again. */
  readonly lists: readonly string[];
}

const NOTHING: Rescue = { damage: [], written: [], lists: [] };
/** Chunks that a repair may read beyond the k that it decodes from. */
const EXTRA_READS = 2;

/** Finds the chunks and leaf lists that are not as they must be, and writes them again. */
export async function rescueAll(
  manifest: Manifest,
  context: DeploymentParts,
  { quick = false }: RepairHow,
): Promise<Rescue> {
  const chunks = await rescueChunks(manifest, quick, context);
  const verdicts = await checkLeafLists(manifest, quick, context);
  const damage = damageOfLists(verdicts);
  if (damage.length === 0) return { ...chunks, lists: [] };
  await context.fence?.check();
  const present = (await listChunks(manifest, context)).filter(({ code }) => code === undefined);
  const file = new SalvageReader(manifest, planOf(manifest, present, true, context), await context.codec(), context);
  try {
    const lists = await restoreLeafLists(manifest, verdicts, { file, codec: context.codec }, context);
    return { ...chunks, damage: [...chunks.damage, ...damage], lists };
  } finally {
    await file.close();
  }
}

/** Finds the chunks that are not as they must be, and writes them again. */
async function rescueChunks(
  manifest: Manifest,
  quick: boolean,
  context: DeploymentParts,
): Promise<Omit<Rescue, "lists">> {
  const listed = await listChunks(manifest, context);
  const lost = damageOf(manifest, listed);
  const gone = lost.filter(isRewritable).map(({ chunk }) => chunk);
  if (gone.length === 0 && (quick || listed.length === 0)) return { damage: lost, written: [] };
  const present = listed.filter(({ code }) => code === undefined);
  const plan = planOf(manifest, present, quick, context);
  const codec = await context.codec();
  const reader = new SalvageReader(manifest, plan, codec, context);
  try {
    if (gone.length > 0) await writeChunks(manifest, gone, reader, context);
    else await reader.drain();
    const found = await hiddenDamage(manifest, present, plan, reader, context);
    const late = found.filter(isRewritable).map(({ chunk }) => chunk);
    const sound = plan.chunks.filter((chunk) => !found.some((one) => one.chunk === chunk));
    if (late.length > 0 && reader.isHeld) await writeChunks(manifest, late, reader, context);
    else if (late.length > 0) {
      const again = new SalvageReader(manifest, { chunks: sound, width: manifest.k }, codec, context);
      try {
        await writeChunks(manifest, late, again, context);
      } finally {
        await again.close();
      }
    }
    return { damage: [...lost, ...found], written: [...gone, ...late].toSorted((a, b) => a - b) };
  } finally {
    await reader.close();
  }
}

/** Reads all chunks where the limit allows it, else one less than that, so that one doubt can be read too. */
function planOf(
  { k }: Manifest,
  present: readonly ListedChunk[],
  quick: boolean,
  { random }: WriteContext,
): SalvagePlan & { readonly digests: readonly number[] } {
  // Those without an MD5 in front, because reading is the only way to know them. Every run leaves others out.
  const order = present
    .map(({ chunk, etag }) => ({ chunk, rank: (md5In(etag) === undefined ? 0 : 1) + random() / 2 }))
    .toSorted((a, b) => a.rank - b.rank)
    .map(({ chunk }) => chunk);
  if (quick) return { chunks: order, width: k, digests: [] };
  const width = order.length <= k + EXTRA_READS ? order.length : k + EXTRA_READS - 1;
  return { chunks: order, width, digests: order.slice(width) };
}

/** Findings of the read, and the unread chunks that differ from the expected ones. */
async function hiddenDamage(
  manifest: Manifest,
  present: readonly ListedChunk[],
  { width }: SalvagePlan,
  reader: SalvageReader,
  context: WriteContext,
): Promise<ChunkDamage[]> {
  const { k } = manifest;
  const placement = placementNow(manifest, context.stores);
  const found = [...reader.damage].map(([chunk, damage]) => ({ chunk, region: placement[chunk]!, ...damage }));
  let reads = width;
  for (const [chunk, expected] of reader.digests()) {
    const actual = md5In(present.find((candidate) => candidate.chunk === chunk)?.etag);
    if (actual === undefined || actual === expected || reader.damage.has(chunk)) continue;
    // Some encrypting stores have other ETags than the MD5, so a difference is proved where the limit allows it.
    const store = storeNamed(context.stores, placement[chunk]!)!;
    const isProved = reads++ < k + EXTRA_READS;
    const damage = isProved ? await checkChunk(manifest, chunk, store, context) : unproved(manifest, chunk, store);
    if (damage) found.push({ ...damage, stripes: [...damage.stripes] });
  }
  return found;
}

function unproved(manifest: Manifest, chunk: number, { region }: Store): ChunkDamage {
  const stripes = Array.from({ length: stripeCount(manifest) }, (_, stripe) => stripe);
  return { chunk, region: region.name, code: "CHUNK_CORRUPT", stripes };
}

/** Encodes chunks from what `file` decodes, and stores them under their own names. */
async function writeChunks(
  manifest: Manifest,
  chunks: readonly number[],
  file: SalvageReader,
  context: DeploymentParts,
): Promise<void> {
  await context.fence?.check();
  await uploadChunks({
    key: manifest.key,
    upload: manifest.upload,
    file,
    layout: manifest,
    expected: manifest.sha256,
    stores: manifest.placement.map((region) => storeNamed(context.stores, region)!),
    chunks,
    needed: chunks.length,
    encoder: await context.encoder(),
    context,
    onBytes: () => {},
  });
}

/** Brings the regions up to date, on the condition of what they hold now, and returns how many took a manifest. */
async function rewriteManifests(record: ManifestRecord, before: ObjectVerdict, context: WriteContext): Promise<number> {
  const survey = await surveyRegions(record.key, context);
  const { newest, regions } = survey;
  const bytes = encodeManifest(record);
  // Another writer was here in the meantime, and its version is whole.
  if (!newest || !Buffer.from(encodeManifest(newest)).equals(bytes)) return 0;
  const lacking = regions.filter((region) => !holds(region, bytes));
  const isCommitted = regions.length - lacking.length >= majorityOf(regions);
  if (!isCommitted && !before.readable && !isTombstone(record)) return 0;
  const better = await improved(record, before, context);
  // The writer of what a minority holds may be undoing it, so it gets a generation that is not undone.
  const copied = !isCommitted || better ? await commitCopy(better ?? record, survey, context) : 0;
  if (copied > 0 || !isCommitted) return copied;
  // A region that has not answered the look would only be waited for again.
  const answering = lacking.filter(({ state }) => state !== "unreachable");
  if (answering.length > 0) await context.fence?.check();
  const writes = await writeRecord(record, answering, context);
  return writes.filter(({ outcome }) => outcome === "written").length;
}

/**
 * The manifest without what is not so: missing chunks that are there by now, and extra chunks of which one is damaged.
 * A scrub stores new ones while the object is read a lot. Undefined where nothing is to be changed.
 */
async function improved(
  record: ManifestRecord,
  { damage }: ObjectVerdict,
  context: WriteContext,
): Promise<Manifest | undefined> {
  if (isTombstone(record) || !maySeal(record, context)) return undefined;
  const { missing, extra, ...rest } = record;
  const isWhole = missing !== undefined && (await findGoneChunks(record, missing, context)).length === 0;
  const isLess = extra !== undefined && damage.some((one) => isExtra(record, one) && isDamage(one));
  if (!isWhole && !isLess) return undefined;
  return { ...rest, ...(!isWhole && missing && { missing }), ...(!isLess && extra && { extra }) };
}

function isExtra({ placement }: Manifest, { chunk }: ChunkDamage): boolean {
  return chunk >= placement.length && chunk !== LEAF_LIST;
}

async function commitCopy(record: ManifestRecord, survey: Survey, context: WriteContext): Promise<number> {
  if (!maySeal(record, context)) return 0;
  const commit = await commitAgainIfNewest(record, survey, context);
  // Another writer is at work, and the next repair sees what it leaves.
  return commit ? context.stores.length - commit.regionsWithout.length : 0;
}

/** A second look: at all manifests, and by length at the chunks that were written. */
async function look(
  before: ObjectVerdict,
  record: ManifestRecord,
  { written, lists }: Pick<Rescue, "written" | "lists">,
  context: WriteContext,
): Promise<ObjectVerdict> {
  const { newest, verdicts } = await checkManifests(record.key, context);
  if (!newest || isTombstone(newest) || isTombstone(record) || newest.upload !== record.upload) {
    return verifyObject(record.key, context, true);
  }
  const gone = new Set(await findGoneChunks(newest, written, context));
  const damage = before.damage.filter(({ chunk, region }) => {
    if (chunk === LEAF_LIST) return !lists.includes(region);
    if (chunk >= newest.placement.length) return newest.extra?.upload === record.extra?.upload;
    return gone.has(chunk) || !written.includes(chunk);
  });
  return verdictOfChunks(newest, verdicts, damage);
}
