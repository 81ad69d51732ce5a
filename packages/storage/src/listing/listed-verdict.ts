/** The verdict on an object from listings, where they leave no doubt. */
import { chunkBytes, isTombstone, LEAF_LIST, leafListBytes, roundRobin, type Manifest } from "@agarose/core/format";
import type { WriteContext } from "../commit/write-context.ts";
import type { Config } from "../config/config.ts";
import { storedChunks } from "../objects/chunk-listing.ts";
import { keptRegions } from "../layout/object-layout.ts";
import type { ObjectVerdict } from "../objects/verify-object.ts";
import type { KeyGroup, Kind, RegionObject } from "./key-groups.ts";
import { currentNames } from "../buckets/region-names.ts";
import { commonRecord, mayBeTombstone, mustBeTombstone } from "./listed-object.ts";

/** The listed kinds that `quickVerdict` needs besides manifests. */
export function quickKinds({ keep }: Pick<Config, "keep">): readonly Kind[] {
  return keep.length > 0 ? ["chunks", "history"] : ["chunks"];
}

/**
 * Sound, or undefined when only a closer look can decide. Where the configuration gives all objects one code, no
 * request is sent; else one manifest is read, because the listing alone does not say how many chunks there should
 * be. A region that is late brings a request to each. A key with a history takes a closer look.
 */
export async function quickVerdict(group: KeyGroup, context: WriteContext): Promise<ObjectVerdict | undefined> {
  // Kept versions of the key are in no manifest.
  if (group.history.length > 0) return undefined;
  const { code, codes } = context.config;
  return code !== "auto" && codes.length === 0
    ? verdictByListing(group, context.config)
    : byOneManifest(group, context);
}

/** Whether a key was listed with nothing but tombstones, and these were forgotten since: nothing is wrong with it. */
export function isForgotten({ key, manifests }: KeyGroup, verdict: Pick<ObjectVerdict, "manifests">): boolean {
  return (
    verdict.manifests.every(({ state }) => state === "missing") &&
    manifests.every((manifest) => mustBeTombstone(key, manifest))
  );
}

/** Whether the manifests of a group are one and the same in all regions, and no tombstones. */
function haveOneManifest({ manifests }: KeyGroup, { regions }: Config): boolean {
  const [first] = manifests;
  if (!first?.etag || manifests.length !== regions.length) return false;
  if (mayBeTombstone(first)) return false;
  return manifests.every(({ etag, bytes }) => etag === first.etag && bytes === first.bytes);
}

async function byOneManifest(group: KeyGroup, context: WriteContext): Promise<ObjectVerdict | undefined> {
  const { config } = context;
  if (!haveOneManifest(group, config)) return undefined;
  const record = await commonRecord(group, context);
  if (!record || isTombstone(record) || record.missing || !areListed(record, group, config)) return undefined;
  const chunks = storedChunks(record).length;
  return soundVerdict(group.key, record.version, { chunks, m: record.m }, config);
}

/** Whether every chunk and leaf list that a manifest names is listed where it should be, with its length. */
function areListed(manifest: Manifest, { chunks }: KeyGroup, { regions }: Config): boolean {
  const found = new Set(chunks.map(({ store, suffix, bytes }) => `${store.region.name} ${suffix} ${bytes}`));
  const { upload, extra } = manifest;
  const extraPlacement = currentNames(extra?.placement ?? [], regions);
  const placement = currentNames(manifest.placement, regions);
  const leaves = currentNames(manifest.leaves ?? [], regions);
  const bytes = chunkBytes(manifest);
  return (
    storedChunks(manifest).every((chunk) => found.has(`${placement[chunk]} ${upload}/${chunk} ${bytes}`)) &&
    extraPlacement.every((region, i) => found.has(`${region} ${extra!.upload}/${placement.length + i} ${bytes}`)) &&
    leaves.every((region) => found.has(`${region} ${upload}/${LEAF_LIST} ${leafListBytes(manifest)}`))
  );
}

/**
 * Sound, or undefined when only its manifest can decide. Sound is an object whose manifests have one ETag in all
 * regions and are no tombstones, and whose chunks are those of one upload: as many as the configuration's code has,
 * each in its region, all of one length, and none of them younger than the manifest beside it.
 */
export function verdictByListing(group: KeyGroup, config: Config): ObjectVerdict | undefined {
  const { key, chunks, manifests } = group;
  const { code } = config;
  if (code === "auto" || !haveOneManifest(group, config)) return undefined;
  const placement = roundRobin(code, keptRegions(config), key);
  if (chunks.length !== placement.length) return undefined;
  const modifiedMs = new Map(manifests.map((manifest) => [manifest.store.region.name, manifest.modifiedMs]));
  const uploads = new Set(chunks.map(({ suffix }) => suffix.slice(0, suffix.indexOf("/"))));
  const seen = new Set<number>();
  for (const chunk of chunks) {
    const index = indexOf(chunk);
    const { name } = chunk.store.region;
    if (placement[index] !== name || chunk.bytes !== chunks[0]!.bytes) return undefined;
    if (chunk.modifiedMs > modifiedMs.get(name)!) return undefined;
    seen.add(index);
  }
  if (uploads.size !== 1 || seen.size !== placement.length) return undefined;
  return soundVerdict(key, undefined, { chunks: chunks.length, m: code.m }, config);
}

function soundVerdict(
  key: string,
  version: string | undefined,
  { chunks, m }: { readonly chunks: number; readonly m: number },
  { regions }: Config,
): ObjectVerdict {
  const manifests = regions.map(({ name }) => ({ region: name, state: "sound" as const }));
  return {
    key,
    version,
    removed: false,
    sound: true,
    readable: true,
    beyondK: chunks > 0 ? m : manifests.length - 1,
    manifests,
    chunksSound: chunks,
    chunks,
    damage: [],
  };
}

function indexOf({ suffix }: RegionObject): number {
  const text = suffix.slice(suffix.indexOf("/") + 1);
  return /^\d{1,3}$/.test(text) ? Number(text) : -1;
}
