/**
 * Checks everything that is stored of one object: its manifest in every region, and every byte of every chunk.
 */
import {
  acceptUnsigned,
  chunkBytes,
  chunkHash,
  chunkName,
  hashShard,
  isTombstone,
  stripeCount,
  stripeShape,
  systemClock,
  toAgaroseError,
  type Clock,
  type FetchedResponse,
  type Manifest,
  type ManifestRecord,
  type SignatureCheck,
} from "@agarose/core";
import { mapPool } from "../pool.ts";
import type { Store } from "../store/store.ts";
import { Breaker } from "./commit/ask-regions.ts";
import { nodeSha256 } from "./sha256.ts";
import { newestOf, surveyAll, type RegionManifest } from "./commit/region-survey.ts";

/** What is stored of an object, and what is wrong with it. */
export interface ObjectVerdict {
  readonly key: string;
  readonly version: string | undefined;
  /** Whether the newest thing is a tombstone: the object was removed. */
  readonly removed: boolean;
  /** Whether everything is there and right. */
  readonly sound: boolean;
  /** Whether a read would still succeed: every stripe has k good chunks. */
  readonly readable: boolean;
  readonly manifests: readonly ManifestVerdict[];
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

/** A chunk that is missing, wrong or out of reach. */
export interface ChunkDamage {
  readonly chunk: number;
  readonly region: string;
  /** CHUNK_MISSING, CHUNK_WRONG_LENGTH, CHUNK_CORRUPT, REGION_UNKNOWN, or why the region did not answer. */
  readonly code: string;
  /** Stripes whose shard is not good. */
  readonly stripes: readonly number[];
}

const CHUNKS_AT_A_TIME = 6;

/** What `verifyObject` works with. */
export interface VerifyContext {
  readonly stores: readonly Store[];
  readonly signal: AbortSignal;
  /** Whose manifests count. Default: everyone's. */
  readonly trust?: SignatureCheck;
  /** Whether to look at lengths only, without reading the chunks. */
  readonly quick?: boolean;
  /** Timers of deadlines. Default: the system's. */
  readonly clock?: Clock;
}

/** Reads everything of `key`. Throws only when the caller aborts. */
export async function verifyObject(key: string, context: VerifyContext): Promise<ObjectVerdict> {
  const { stores, signal, quick = false } = context;
  const { newest, verdicts } = await checkManifests(key, context);
  const areSound = verdicts.every(({ state }) => state === "sound");
  if (!newest || isTombstone(newest)) {
    return {
      key,
      version: undefined,
      removed: newest !== undefined,
      sound: newest !== undefined && areSound,
      readable: false,
      manifests: verdicts,
      chunksSound: 0,
      chunks: 0,
      damage: [],
    };
  }
  const indices = newest.bytes === 0 ? [] : newest.placement.map((_, chunk) => chunk);
  const damage: ChunkDamage[] = [];
  await mapPool(indices, CHUNKS_AT_A_TIME, async (chunk) => {
    const region = newest.placement[chunk]!;
    const store = stores.find((candidate) => candidate.region.name === region);
    const found = store
      ? await checkChunk(newest, chunk, store, quick, signal)
      : { chunk, region, code: "REGION_UNKNOWN", stripes: allStripes(newest) };
    if (found) damage.push(found);
  });
  damage.sort((a, b) => a.chunk - b.chunk);
  return {
    key,
    version: newest.version,
    removed: false,
    sound: damage.length === 0 && areSound,
    readable: isReadable(newest, damage),
    manifests: verdicts,
    chunksSound: indices.length - damage.length,
    chunks: indices.length,
    damage,
  };
}

/** Reads the manifest of every region. The newest trusted one, or a tombstone, is what the object should be. */
export async function checkManifests(
  key: string,
  { stores, signal, trust = acceptUnsigned, clock = systemClock }: Omit<VerifyContext, "quick">,
): Promise<{ newest: ManifestRecord | undefined; verdicts: ManifestVerdict[] }> {
  const breaker = new Breaker(clock);
  // Nothing else waits for the answers, so a slow region gets its time.
  const regions = await surveyAll(key, { stores, signal, trust, clock, breaker }, stores.length);
  const newest = newestOf(regions);
  return { newest, verdicts: regions.map((region) => verdictOf(region, newest)) };
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
  if (JSON.stringify(record) === JSON.stringify(newest)) return { region: name, state: "sound" };
  const what = isTombstone(record) ? "a tombstone" : `version ${record.version}`;
  return { region: name, state: "stale", problem: `${what} of generation ${record.generation}, ${record.modified}` };
}

async function checkChunk(
  manifest: Manifest,
  chunk: number,
  store: Store,
  quick: boolean,
  signal: AbortSignal,
): Promise<ChunkDamage | undefined> {
  const region = store.region.name;
  const all = allStripes(manifest);
  try {
    if (quick) {
      const bytes = await store.head(chunkName(manifest.key, manifest.upload, chunk), signal);
      if (bytes === chunkBytes(manifest)) return undefined;
      return { chunk, region, code: bytes === undefined ? "CHUNK_MISSING" : "CHUNK_WRONG_LENGTH", stripes: all };
    }
    const response = await store.get(chunkName(manifest.key, manifest.upload, chunk), { signal });
    if (response.status !== 200) {
      const code = response.status === 404 ? "CHUNK_MISSING" : "SOURCE_FAILED";
      return { chunk, region, code, stripes: all };
    }
    const { corrupt, received } = await hashShards(manifest, chunk, response);
    if (received !== chunkBytes(manifest)) return { chunk, region, code: "CHUNK_WRONG_LENGTH", stripes: corrupt };
    return corrupt.length > 0 ? { chunk, region, code: "CHUNK_CORRUPT", stripes: corrupt } : undefined;
  } catch (error) {
    signal.throwIfAborted();
    return { chunk, region, code: toAgaroseError(error, "SOURCE_FAILED").code, stripes: all };
  }
}

/** The stripes of a chunk whose hash differs from the manifest's, and the length of the chunk in bytes. */
async function hashShards(
  manifest: Manifest,
  chunk: number,
  response: FetchedResponse,
): Promise<{ corrupt: number[]; received: number }> {
  const stripes = stripeCount(manifest);
  const corrupt: number[] = [];
  let received = 0;
  let stripe = 0;
  let shard = new Uint8Array(stripeShape(manifest, 0).shardBytes);
  let filled = 0;
  for await (const part of response.body ?? []) {
    received += part.length;
    for (let at = 0; at < part.length && stripe < stripes;) {
      const taken = part.subarray(at, at + shard.length - filled);
      shard.set(taken, filled);
      filled += taken.length;
      at += taken.length;
      if (filled < shard.length) break;
      const hash = Buffer.from(await hashShard(shard, manifest.blockBytes, nodeSha256));
      if (!hash.equals(chunkHash(manifest, stripe, chunk))) corrupt.push(stripe);
      stripe++;
      filled = 0;
      if (stripe < stripes) shard = new Uint8Array(stripeShape(manifest, stripe).shardBytes);
    }
  }
  for (; stripe < stripes; stripe++) corrupt.push(stripe);
  return { corrupt, received };
}

function allStripes(manifest: Manifest): number[] {
  return Array.from({ length: stripeCount(manifest) }, (_, stripe) => stripe);
}

function isReadable(manifest: Manifest, damage: readonly ChunkDamage[]): boolean {
  const bad = new Map<number, number>();
  for (const { stripes } of damage) for (const stripe of stripes) bad.set(stripe, (bad.get(stripe) ?? 0) + 1);
  return [...bad.values()].every((count) => count <= manifest.m);
}
