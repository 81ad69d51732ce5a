/**
 * Checks everything that is stored of one object: its manifest in every region, and every byte of every chunk.
 */
import {
  acceptUnsigned,
  AgaroseError,
  hashShard,
  isTombstone,
  chunkBytes,
  chunkHash,
  chunkName,
  manifestName,
  parseManifest,
  readChecked,
  refuseTooLarge,
  stripeCount,
  stripeShape,
  systemSha256,
  toAgaroseError,
  type FetchedResponse,
  type Manifest,
} from "@agarose/core";
import { mapPool } from "../pool.ts";
import type { Store } from "../store/store.ts";

/** What is stored of an object, and what is wrong with it. */
export interface ObjectVerdict {
  readonly key: string;
  readonly version: string | undefined;
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
  /** `stale`: sound, but of another version than the newest one, or with other contents. */
  readonly state: "sound" | "missing" | "stale" | "invalid" | "unreachable";
  readonly problem?: string;
}

/** A chunk that is missing, wrong or out of reach. */
export interface ChunkDamage {
  readonly chunk: number;
  readonly region: string;
  /** CHUNK_MISSING, CHUNK_WRONG_LENGTH, CHUNK_CORRUPT, or why the region did not answer. */
  readonly code: string;
  /** Stripes whose shard is not good. */
  readonly stripes: readonly number[];
}

const CHUNKS_AT_A_TIME = 6;

/** Reads everything of `key`. Throws only when the caller aborts. */
export async function verifyObject(key: string, stores: readonly Store[], signal: AbortSignal): Promise<ObjectVerdict> {
  const { manifest, verdicts } = await checkManifests(key, stores, signal);
  if (!manifest) {
    return {
      key,
      version: undefined,
      sound: false,
      readable: false,
      manifests: verdicts,
      chunksSound: 0,
      chunks: 0,
      damage: [],
    };
  }
  const indices = manifest.bytes === 0 ? [] : manifest.placement.map((_, chunk) => chunk);
  const damage: ChunkDamage[] = [];
  await mapPool(indices, CHUNKS_AT_A_TIME, async (chunk) => {
    const store = stores.find(({ region }) => region.name === manifest.placement[chunk])!;
    const found = await checkChunk(manifest, chunk, store, signal);
    if (found) damage.push(found);
  });
  damage.sort((a, b) => a.chunk - b.chunk);
  return {
    key,
    version: manifest.version,
    sound: damage.length === 0 && verdicts.every(({ state }) => state === "sound"),
    readable: isReadable(manifest, damage),
    manifests: verdicts,
    chunksSound: indices.length - damage.length,
    chunks: indices.length,
    damage,
  };
}

/** Reads the manifest of every region; the newest sound one is what the object should be. */
export async function checkManifests(
  key: string,
  stores: readonly Store[],
  signal: AbortSignal,
): Promise<{ manifest: Manifest | undefined; verdicts: ManifestVerdict[] }> {
  const regions = new Set(stores.map(({ region }) => region.name));
  const found = await Promise.all(stores.map((store) => readOne(key, store, regions, signal)));
  const sound = found.flatMap(({ manifest }) => (manifest ? [manifest] : []));
  const newest = sound.toSorted((a, b) => Date.parse(b.modified) - Date.parse(a.modified))[0];
  const expected = newest && JSON.stringify(newest);
  const verdicts = found.map(({ verdict, manifest }): ManifestVerdict => {
    if (!manifest || JSON.stringify(manifest) === expected) return verdict;
    return { ...verdict, state: "stale", problem: `version ${manifest.version} of ${manifest.modified}` };
  });
  return { manifest: newest, verdicts };
}

async function readOne(
  key: string,
  store: Store,
  regions: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<{ manifest?: Manifest; verdict: ManifestVerdict }> {
  const region = store.region.name;
  try {
    const response = await store.get(manifestName(key), { signal });
    if (response.status === 404) return { verdict: { region, state: "missing" } };
    if (response.status !== 200) {
      return { verdict: { region, state: "unreachable", problem: `status ${response.status}` } };
    }
    const manifest = await parseManifest(await readChecked(response, refuseTooLarge), {
      key,
      trust: acceptUnsigned,
      sha256: systemSha256,
    });
    if (isTombstone(manifest)) return { verdict: { region, state: "missing" } };
    checkRegions(manifest, regions);
    return { manifest, verdict: { region, state: "sound" } };
  } catch (error) {
    signal.throwIfAborted();
    const { code, message } = toAgaroseError(error, "SOURCE_FAILED");
    const state =
      code.startsWith("MANIFEST_") || code === "REGION_UNKNOWN" || code === "CODE_INVALID" ? "invalid" : "unreachable";
    return { verdict: { region, state, problem: `${code}: ${message}` } };
  }
}

/** Throws REGION_UNKNOWN unless every chunk is in a configured region. A read needs k chunks only. */
function checkRegions({ key, placement }: Manifest, regions: ReadonlySet<string>): void {
  const unknown = [...new Set(placement)].filter((region) => !regions.has(region));
  if (unknown.length === 0) return;
  throw new AgaroseError(
    "REGION_UNKNOWN",
    `manifest of ${JSON.stringify(key)} places chunks in ${unknown.join(", ")}, configured are ` +
      `${[...regions].join(", ")}: add the missing ones to the configuration`,
    { regions: unknown },
  );
}

async function checkChunk(
  manifest: Manifest,
  chunk: number,
  store: Store,
  signal: AbortSignal,
): Promise<ChunkDamage | undefined> {
  const region = store.region.name;
  const all = Array.from({ length: stripeCount(manifest) }, (_, stripe) => stripe);
  try {
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
      const hash = Buffer.from(await hashShard(shard, manifest.blockBytes, systemSha256));
      if (!hash.equals(chunkHash(manifest, stripe, chunk))) corrupt.push(stripe);
      stripe++;
      filled = 0;
      if (stripe < stripes) shard = new Uint8Array(stripeShape(manifest, stripe).shardBytes);
    }
  }
  for (; stripe < stripes; stripe++) corrupt.push(stripe);
  return { corrupt, received };
}

function isReadable(manifest: Manifest, damage: readonly ChunkDamage[]): boolean {
  const bad = new Map<number, number>();
  for (const { stripes } of damage) for (const stripe of stripes) bad.set(stripe, (bad.get(stripe) ?? 0) + 1);
  return [...bad.values()].every((count) => count <= manifest.m);
}
