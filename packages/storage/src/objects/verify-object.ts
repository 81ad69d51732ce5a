/** Checks everything that is stored of one object: its manifest in every region, and every byte of every chunk. */
import { createHash } from "node:crypto";
import { AgaroseError, toAgaroseError } from "@agarose/core";
import {
  areSame,
  chunkRegions,
  HASH_BYTES,
  hashShard,
  isFunctional,
  isTombstone,
  LEAF_LIST,
  stripeCount,
  stripeShape,
  type Manifest,
  type ManifestRecord,
} from "@agarose/core/format";
import type { StripeHashes } from "@agarose/core/read";
import { storeNamed } from "../buckets/region-names.ts";
import type { Store } from "../buckets/store.ts";
import { mapOrdered, allOf } from "../listing/adaptive-pool.ts";
import { checkLeafLists, hashesOf, type LeafListVerdict } from "../leaf-lists/leaf-lists.ts";
import type { RegionParts } from "../commit/write-context.ts";
import { ChunkStream } from "../repair/chunk-stream.ts";
import { newestOf, surveyAll, type RegionManifest } from "../regions/region-survey.ts";
import { extraChunks, findGoneChunks, listChunks, storedChunks, type ListedChunk } from "./chunk-listing.ts";
import { nodeSha256 } from "./sha256.ts";
import { SilenceLimit } from "./silence.ts";

/** The stored parts of an object, and their damage. */
export interface ObjectVerdict {
  readonly key: string;
  readonly version: string | undefined;
  /** Whether the newest thing is a tombstone: the object was removed. */
  readonly removed: boolean;
  /** Whether everything is there and right. */
  readonly sound: boolean;
  /** Whether a read would still succeed: every stripe has k good chunks. */
  readonly readable: boolean;
  /**
   * Good chunks beyond k of the stripe that has the fewest; below 0 when it cannot be read. Of an object without
   * chunks: sound manifests beyond one.
   */
  readonly beyondK: number;
  readonly manifests: readonly ManifestVerdict[];
  readonly chunksSound: number;
  readonly chunks: number;
  readonly damage: readonly ChunkDamage[];
  /** Versions that the history of the key keeps. Absent when there are none, or they were not looked at. */
  readonly kept?: readonly KeptVerdict[];
  /** Regions that did not say what they keep. */
  readonly historyProblems?: readonly { readonly region: string; readonly problem: string }[];
}

/** A version that was replaced, and is kept. */
export interface KeptVerdict {
  readonly generation: number;
  readonly version: string;
  readonly chunksSound: number;
  readonly chunks: number;
  readonly damage: readonly ChunkDamage[];
}

/** The manifest of one region. */
export interface ManifestVerdict {
  readonly region: string;
  /**
   * - `stale`: sound, but not the newest.
   * - `untrusted`: not signed by a publisher that the configuration trusts.
   */
  readonly state: "sound" | "missing" | "stale" | "invalid" | "untrusted" | "unreachable";
  readonly problem?: string;
}

/** A chunk or leaf list that is missing, wrong or out of reach. */
export interface ChunkDamage {
  /** 256 for the leaf list. */
  readonly chunk: number;
  readonly region: string;
  /** CHUNK_MISSING, CHUNK_WRONG_LENGTH, CHUNK_CORRUPT, REGION_UNKNOWN, or why the region did not answer. */
  readonly code: string;
  /** Stripes whose shard is not good. */
  readonly stripes: readonly number[];
}

const CHUNKS_AT_A_TIME = 6;
/** For a region that hung before and has not answered since. */
const SUSPECT_MS_MAX = 2_500;

/** Reads everything of `key`, or with `quick` only what the regions list of it. Throws only when the caller aborts. */
export async function verifyObject(key: string, context: RegionParts, quick = false): Promise<ObjectVerdict> {
  const { newest, verdicts } = await checkManifests(key, context);
  if (!newest || isTombstone(newest)) return verdictWithoutChunks(key, newest, verdicts);
  const [damage, extra] = await Promise.all([damageIn(newest, quick, context), checkExtra(newest, quick, context)]);
  return verdictOfChunks(newest, verdicts, [...damage, ...extra]);
}

/** The damage of the chunks and leaf lists of a version. Rejects only when the caller aborts. */
export async function damageIn(manifest: Manifest, quick: boolean, context: RegionParts): Promise<ChunkDamage[]> {
  const [chunks, lists] = await Promise.all([
    quick ? listChunks(manifest, context).then((listed) => damageOf(manifest, listed)) : checkChunks(manifest, context),
    checkLeafLists(manifest, quick, context),
  ]);
  return [...chunks, ...damageOfLists(lists)];
}

/** The damage of an object's extra chunks. No stripe needs them. Rejects only when the caller aborts. */
export async function checkExtra(manifest: Manifest, quick: boolean, context: RegionParts): Promise<ChunkDamage[]> {
  const chunks = extraChunks(manifest);
  if (!quick) {
    const damage = await checkChunks(manifest, context, chunks);
    return damage.map((one) => ({ ...one, stripes: [] }));
  }
  const regions = chunkRegions(manifest);
  const gone = await findGoneChunks(manifest, chunks, context);
  return gone.map((chunk) => ({ chunk, region: regions[chunk]!, code: "CHUNK_MISSING", stripes: [] }));
}

/** The verdict on a key that has no chunks now: it was removed, or no region has a sound manifest of it. */
export function verdictWithoutChunks(
  key: string,
  newest: ManifestRecord | undefined,
  manifests: readonly ManifestVerdict[],
): ObjectVerdict {
  return {
    key,
    version: undefined,
    removed: newest !== undefined,
    sound: newest !== undefined && manifests.every(({ state }) => state === "sound"),
    readable: false,
    beyondK: soundOf(manifests) - 1,
    manifests,
    chunksSound: 0,
    chunks: 0,
    damage: [],
  };
}

/** The verdict on an object from what is wrong with its chunks. */
export function verdictOfChunks(
  newest: Manifest,
  manifests: readonly ManifestVerdict[],
  damage: readonly ChunkDamage[],
): ObjectVerdict {
  const chunks = storedChunks(newest).length;
  const beyondK = beyondKOf(newest, damage);
  return {
    key: newest.key,
    version: newest.version,
    removed: false,
    sound: damage.length === 0 && manifests.every(({ state }) => state === "sound"),
    readable: beyondK >= 0,
    beyondK: chunks > 0 ? beyondK : soundOf(manifests) - 1,
    manifests,
    chunksSound: chunks - damage.filter(({ chunk }) => chunk < chunks).length,
    chunks,
    damage: damage.toSorted((a, b) => a.chunk - b.chunk),
  };
}

/** The damage that a listing of chunks shows. */
export function damageOf(manifest: Manifest, listed: readonly ListedChunk[]): ChunkDamage[] {
  return listed.flatMap(({ chunk, region, code }) =>
    code === undefined ? [] : { chunk, region, code, stripes: allStripes(manifest) },
  );
}

/** The damage of leaf lists. */
export function damageOfLists(lists: readonly LeafListVerdict[]): ChunkDamage[] {
  return lists.flatMap(({ region, code }) =>
    code === undefined ? [] : [{ chunk: LEAF_LIST, region, code, stripes: [] }],
  );
}

/** Reads chunks of an object, by default all of its code, and returns what is wrong with them. */
export async function checkChunks(
  manifest: Manifest,
  context: RegionParts,
  chunks = storedChunks(manifest),
): Promise<ChunkDamage[]> {
  const { stores } = context;
  const hashes = hashesOf(manifest, context);
  const regions = chunkRegions(manifest);
  const judged = mapOrdered(chunks, CHUNKS_AT_A_TIME, async (chunk) => {
    const region = regions[chunk]!;
    const store = storeNamed(stores, region);
    if (store) return checkChunk(manifest, chunk, store, context, hashes);
    return { chunk, region, code: "REGION_UNKNOWN", stripes: allStripes(manifest) };
  });
  return (await allOf(judged)).filter((damage) => damage !== undefined);
}

/** Reads the manifest of every region. The newest trusted one, or a tombstone, is what the object should be. */
export async function checkManifests(
  key: string,
  context: RegionParts,
): Promise<{ newest: ManifestRecord | undefined; verdicts: ManifestVerdict[] }> {
  // Nothing else waits for the answers, so a slow region gets its time, unless it hung before.
  const regions = await surveyAll(key, context, context.breaker.countResponsive(context.stores));
  const newest = newestOf(regions);
  return { newest, verdicts: manifestVerdicts(regions, newest) };
}

/** The state of each region's manifest, given the newest of all. */
export function manifestVerdicts(
  regions: readonly RegionManifest[],
  newest: ManifestRecord | undefined,
): ManifestVerdict[] {
  return regions.map((region) => verdictOf(region, newest));
}

function verdictOf(region: RegionManifest, newest: ManifestRecord | undefined): ManifestVerdict {
  const { state, record, problem } = region;
  const { name } = region.store.region;
  if (!record) {
    return {
      region: name,
      state: state === "absent" || state === "sound" ? "missing" : state,
      ...(problem && { problem: `${problem.code}: ${problem.message}` }),
    };
  }
  if (areSame(record, newest)) return { region: name, state: "sound" };
  const what = isTombstone(record) ? "a tombstone" : `version ${record.version}`;
  return { region: name, state: "stale", problem: `${what} of generation ${record.generation}, ${record.modified}` };
}

/** Reads one chunk; undefined when it is sound. Rejects only when the caller aborts. */
export async function checkChunk(
  manifest: Manifest,
  chunk: number,
  store: Store,
  context: RegionParts,
  hashes = hashesOf(manifest, context),
): Promise<ChunkDamage | undefined> {
  const { signal, clock, breaker } = context;
  const region = store.region.name;
  const found = (code: string, stripes = allStripes(manifest)): ChunkDamage => ({ chunk, region, code, stripes });
  if (breaker.isOpen(region)) return found("SOURCE_FAILED");
  const silence = new SilenceLimit(clock, signal, breaker.isSuspect(region) ? SUSPECT_MS_MAX : undefined);
  const stream = new ChunkStream(manifest, chunk, store, 0, silence.signal, (step) => silence.limit(step));
  const stripes = stripeCount(manifest);
  // An extra chunk has one hash.
  const extra = isFunctional(manifest, chunk) ? createHash("sha256") : undefined;
  const corrupt: number[] = [];
  let stripe = 0;
  try {
    for (; stripe < stripes; stripe++) {
      const shard = await stream.next(stripeShape(manifest, stripe).shardBytes);
      if (stripe === 0) breaker.answered(region);
      if (extra) extra.update(shard);
      else if (!(await isSound(manifest, { stripe, chunk, shard }, hashes, silence))) corrupt.push(stripe);
    }
    await stream.end();
    const isCorrupt = extra && extra.digest("hex") !== manifest.extra!.sha256[chunk - manifest.placement.length];
    if (isCorrupt) return found("CHUNK_CORRUPT");
    return corrupt.length > 0 ? found("CHUNK_CORRUPT", corrupt) : undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (silence.isOver) breaker.open(region);
    const { code } = toAgaroseError(error, "SOURCE_FAILED");
    // A reader asks for a chunk of one stripe without a range, and takes none that is longer.
    if (code !== "CHUNK_WRONG_LENGTH" || stripes === 1) return found(code);
    return found(code, [...corrupt, ...allStripes(manifest).slice(stripe)]);
  } finally {
    stream.close();
  }
}

/** Whether a shard has the hash that its manifest names. */
async function isSound(
  { blockBytes }: Manifest,
  { stripe, chunk, shard }: { readonly stripe: number; readonly chunk: number; readonly shard: Uint8Array },
  hashes: StripeHashes,
  { signal }: SilenceLimit,
): Promise<boolean> {
  const hash = Buffer.from(await hashShard(shard, blockBytes, nodeSha256));
  const expected = await hashes.of(stripe, signal);
  return hash.equals(expected.subarray(chunk * HASH_BYTES, (chunk + 1) * HASH_BYTES));
}

function allStripes(manifest: Manifest): number[] {
  return Array.from({ length: stripeCount(manifest) }, (_, stripe) => stripe);
}

function beyondKOf({ m, pageStripes, leaves = [] }: Manifest, damage: readonly ChunkDamage[]): number {
  // Without the hashes in its pages, no stripe can be read.
  const lists = leaves.length - damage.filter(({ chunk }) => chunk === LEAF_LIST).length;
  const most = pageStripes ? Math.min(m, lists - 1) : m;
  const bad = new Map<number, number>();
  for (const { stripes } of damage) for (const stripe of stripes) bad.set(stripe, (bad.get(stripe) ?? 0) + 1);
  return [...bad.values()].reduce((fewest, count) => Math.min(fewest, m - count), most);
}

function soundOf(manifests: readonly ManifestVerdict[]): number {
  return manifests.filter(({ state }) => state === "sound").length;
}

/**
 * - `sound`: every manifest and every chunk is there and right.
 * - `unchecked`: nothing is known to be damaged, but some regions did not answer.
 * - `damaged`: something is missing or wrong; the object still reads.
 * - `unreadable`: a stripe has fewer than k good chunks in the regions that answered.
 */
export type ObjectState = "sound" | "unchecked" | "damaged" | "unreadable";

/** A region that did not answer for at least one manifest or chunk, and the first reason it gave. */
export interface UnreachableRegion {
  readonly region: string;
  readonly problem: string;
}

const DAMAGE_CODES: ReadonlySet<string> = new Set([
  "CHUNK_MISSING",
  "CHUNK_WRONG_LENGTH",
  "CHUNK_CORRUPT",
  "REGION_UNKNOWN",
]);

/** The state of an object, from its verdict. */
export function stateOf(verdict: ObjectVerdict): ObjectState {
  const { sound, removed, readable, manifests, damage } = verdict;
  if (sound) return "sound";
  if (!readable && !removed) return "unreadable";
  const isDamaged = damage.some(isDamage) || manifests.some(isManifestDamage) || hasKeptDamage(verdict);
  return isDamaged ? "damaged" : "unchecked";
}

/** Whether a version that is kept has lost chunks. */
export function hasKeptDamage({ kept = [] }: Pick<ObjectVerdict, "kept">): boolean {
  return kept.some(({ damage }) => damage.some(isDamage));
}

/** The regions that did not answer, each once, in the order of their first appearance. */
export function unreachableRegions(verdicts: readonly ObjectVerdict[]): UnreachableRegion[] {
  const problems = new Map<string, string>();
  const note = (region: string, problem: string): void => {
    if (!problems.has(region)) problems.set(region, problem);
  };
  for (const { manifests, damage, kept = [], historyProblems = [] } of verdicts) {
    for (const { region, state, problem } of manifests) if (state === "unreachable") note(region, problem ?? "");
    const all = [damage, ...kept.map((version) => version.damage)].flat();
    for (const chunk of all) if (!isDamage(chunk)) note(chunk.region, chunk.code);
    for (const { region, problem } of historyProblems) note(region, problem);
  }
  return [...problems].map(([region, problem]) => ({ region, problem }));
}

/** Adds regions to those that are known, each once. */
export function withUnreachable(
  known: readonly UnreachableRegion[],
  found: readonly UnreachableRegion[],
): readonly UnreachableRegion[] {
  const names = new Set(known.map(({ region }) => region));
  return [...known, ...found.filter(({ region }) => !names.has(region))];
}

/** Throws OBJECT_NOT_FOUND when no region has a manifest of one of the objects, or it was removed. */
export function refuseUnknown(verdicts: readonly ObjectVerdict[]): void {
  const unknown = verdicts.find(
    ({ removed, sound, manifests }) => (removed && sound) || manifests.every(({ state }) => state === "missing"),
  );
  if (!unknown) return;
  const { key } = unknown;
  throw new AgaroseError(
    "OBJECT_NOT_FOUND",
    `no region has a manifest of ${JSON.stringify(key)}: check the key with \`agarose ls\``,
    { key },
  );
}

/** Whether bytes are missing or wrong; else a region did not answer. */
export function isDamage({ code }: Pick<ChunkDamage, "code">): boolean {
  return DAMAGE_CODES.has(code);
}

/** Whether a region's manifest is missing or wrong; else the region did not answer. */
export function isManifestDamage({ state }: ManifestVerdict): boolean {
  return state !== "sound" && state !== "unreachable";
}
