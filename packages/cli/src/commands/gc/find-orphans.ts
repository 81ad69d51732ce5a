/**
 * Orphans: chunks that no manifest of any region names, left by a put that failed or by a version that was replaced.
 *
 * A put under way has chunks and no manifest yet, so only old chunks count. While one region cannot list its manifests,
 * nothing counts in any region.
 */
import {
  acceptUnsigned,
  AgaroseError,
  isTombstone,
  systemSha256,
  CHUNK_PREFIX,
  chunkNamePrefix,
  decodeKey,
  encodeKey,
  keyOfManifestName,
  MANIFEST_PREFIX,
  manifestName,
  parseManifest,
} from "@agarose/core";
import { mapPool } from "../../lib/pool.ts";
import type { Store } from "../../lib/store/store.ts";

/** A chunk that no manifest names. */
export interface Orphan {
  readonly region: string;
  readonly name: string;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/** Where and what to search. */
export interface OrphanSearch {
  readonly stores: readonly Store[];
  /** Begins the keys to look at; "" for all. */
  readonly prefix: string;
  /** Only chunks written before then count. */
  readonly beforeMs: number;
  readonly signal: AbortSignal;
}

const MANIFESTS_AT_A_TIME = 16;

/** The orphans that are old enough. Rejects as `findAllOrphans` does. */
export async function findOrphans(search: OrphanSearch): Promise<Orphan[]> {
  return (await findAllOrphans(search)).filter(({ modifiedMs }) => modifiedMs < search.beforeMs);
}

/**
 * The orphans of every age. Rejects when a region cannot be listed or a manifest cannot be read, because what it names
 * may be in use.
 */
export async function findAllOrphans(search: OrphanSearch): Promise<Orphan[]> {
  const { prefix, signal, stores } = search;
  // Chunks first: a put that ends meanwhile has its manifest among those listed afterwards.
  const candidates = await Promise.all(stores.map((store) => chunksOf(store, search)));
  const versions = await Promise.all(
    stores.map(async (store) => {
      const names: string[] = [];
      for await (const { name } of store.list(`${MANIFEST_PREFIX}${encodeKey(prefix)}`, signal)) names.push(name);
      return mapPool(names, MANIFESTS_AT_A_TIME, (name) => versionNamed(name, store, signal));
    }),
  );
  const used = new Set(versions.flat());
  return candidates.flat().filter(({ name }) => !used.has(versionOf(name)));
}

/** Those of `orphans` that no manifest names by now: a later put may have the same version. */
export async function stillOrphans(orphans: readonly Orphan[], { stores, signal }: OrphanSearch): Promise<Orphan[]> {
  const manifests = new Set(orphans.flatMap(({ name }) => manifestOfChunk(name) ?? []));
  const versions = await Promise.all(
    stores.map((store) => mapPool([...manifests], MANIFESTS_AT_A_TIME, (name) => versionNamed(name, store, signal))),
  );
  const used = new Set(versions.flat());
  return orphans.filter(({ name }) => !used.has(versionOf(name)));
}

async function chunksOf(store: Store, { prefix, signal }: OrphanSearch): Promise<Orphan[]> {
  const orphans: Orphan[] = [];
  for await (const listed of store.list(`${CHUNK_PREFIX}${encodeKey(prefix)}`, signal)) {
    orphans.push({ region: store.region.name, ...listed });
  }
  return orphans;
}

/** What the chunks of the version that a manifest names begin with; undefined when it is not there. */
async function versionNamed(name: string, store: Store, signal: AbortSignal): Promise<string | undefined> {
  const key = keyOfManifestName(name);
  if (key === undefined) return undefined;
  const response = await store.get(name, { signal });
  if (response.status === 404) return undefined;
  if (response.status !== 200) {
    const message = `region ${store.region.name} answered ${response.status} for ${name}: no chunk can be called an orphan`;
    throw new AgaroseError("SOURCE_FAILED", message, { region: store.region.name, status: response.status });
  }
  const text = new Uint8Array(await new Response(response.body).arrayBuffer());
  const manifest = await parseManifest(text, { key, trust: acceptUnsigned, sha256: systemSha256 });
  return isTombstone(manifest) ? undefined : chunkNamePrefix(key, manifest.upload);
}

/** `chunks/<key>@<version>/` of the name of a chunk. */
function versionOf(chunk: string): string {
  return chunk.slice(0, chunk.lastIndexOf("/") + 1);
}

/** The name of the manifest that would name this chunk; undefined when the name is not a chunk's. */
function manifestOfChunk(chunk: string): string | undefined {
  const encoded = chunk.slice(CHUNK_PREFIX.length, chunk.lastIndexOf("@"));
  try {
    return manifestName(decodeKey(encoded));
  } catch {
    return undefined;
  }
}
