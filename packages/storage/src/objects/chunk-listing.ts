/** The listed chunks of one object: one request for each region, and no byte of a chunk. */
import { chunkBytes, chunkName, chunkNameOf, chunkNamePrefix, chunkRegions, type Manifest } from "@agarose/core/format";
import { boundedNames } from "../listing/bounded-names.ts";
import type { ListedObject, Store } from "../buckets/store.ts";
import { currentNames, regionsOf, storeNamed } from "../buckets/region-names.ts";
import { runTasks, type Task } from "../regions/ask-regions.ts";
import type { RegionParts } from "../commit/write-context.ts";

/** A chunk as its region lists it. */
export interface ListedChunk {
  readonly chunk: number;
  readonly region: string;
  /** The damage that the listing shows: undefined when the chunk has its length. */
  readonly code?: string;
  /** As the store spells it; undefined when the store does not say. */
  readonly etag?: string;
}

/** The chunks that an object has in buckets: none when it is empty or in its manifest. */
export function storedChunks({ bytes, inline, placement }: Manifest): number[] {
  return bytes === 0 || inline !== undefined ? [] : [...placement.keys()];
}

/** The extra chunks that a manifest names. */
export function extraChunks({ placement, extra }: Manifest): number[] {
  return (extra?.placement ?? []).map((_, i) => placement.length + i);
}

/** The uploads whose chunks a manifest names. */
export function namedUploads({ upload, extra }: Manifest): string[] {
  return extra ? [upload, extra.upload] : [upload];
}

/** Lists the chunks of an object, in their order. Rejects only when the caller aborts. */
export async function listChunks(manifest: Manifest, context: RegionParts): Promise<ListedChunk[]> {
  const { key, upload } = manifest;
  const placement = placementNow(manifest, context.stores);
  const chunks = storedChunks(manifest);
  const used = new Set(chunks.map((chunk) => placement[chunk]!));
  const stores = context.stores.filter(({ region }) => used.has(region.name));
  const tasks = stores.map((store): Task<Map<string, ListedObject>> => ({
    store,
    run: (signal) => listByName(store, chunkNamePrefix(key, upload), signal),
  }));
  // Nothing else waits for the answers, so a slow region gets its time, unless it hung before.
  const outcomes = await runTasks(tasks, { enough: context.breaker.countResponsive(stores) }, context);
  const byRegion = new Map(outcomes.map((outcome) => [outcome.store.region.name, outcome]));
  const expected = chunkBytes(manifest);
  return chunks.map((chunk): ListedChunk => {
    const region = placement[chunk]!;
    const outcome = byRegion.get(region);
    if (!outcome) return { chunk, region, code: "REGION_UNKNOWN" };
    if (outcome.error) return { chunk, region, code: outcome.error.code };
    const listed = outcome.value.get(chunkName(key, upload, chunk));
    if (!listed) return { chunk, region, code: "CHUNK_MISSING" };
    if (listed.bytes !== expected) return { chunk, region, code: "CHUNK_WRONG_LENGTH" };
    return { chunk, region, ...(listed.etag !== undefined && { etag: listed.etag }) };
  });
}

/** The region of each chunk, by the name that it has now. */
export function placementNow({ placement }: Pick<Manifest, "placement">, stores: readonly Store[]): string[] {
  return currentNames(placement, regionsOf(stores));
}

async function listByName(store: Store, prefix: string, signal: AbortSignal): Promise<Map<string, ListedObject>> {
  const found = new Map<string, ListedObject>();
  for await (const listed of boundedNames(store, prefix, signal)) found.set(listed.name, listed);
  return found;
}

/**
 * The chunks of `chunks` that their regions do not have in full, ascending. A region that does not answer counts as
 * having them; a region that is not configured as not having them.
 */
export async function findGoneChunks(
  manifest: Pick<Manifest, "key" | "upload" | "bytes" | "stripeBytes" | "k" | "m" | "placement" | "extra">,
  chunks: readonly number[],
  context: RegionParts,
): Promise<number[]> {
  const regions = chunkRegions(manifest);
  const expected = chunkBytes(manifest);
  if (manifest.bytes === 0) return [];
  const storeOf = (chunk: number) => storeNamed(context.stores, regions[chunk]!);
  const known = chunks.filter(storeOf);
  const tasks = known.map((chunk): Task<number | undefined> => {
    const store = storeOf(chunk)!;
    return { store, run: (signal) => store.head(chunkNameOf(manifest, chunk), signal) };
  });
  const outcomes = await runTasks(tasks, { enough: Math.min(manifest.k, tasks.length) }, context);
  const gone = known.filter((_, index) => !outcomes[index]!.error && outcomes[index]!.value !== expected);
  const unknown = chunks.filter((chunk) => !storeOf(chunk));
  return [...gone, ...unknown].toSorted((a, b) => a - b);
}
