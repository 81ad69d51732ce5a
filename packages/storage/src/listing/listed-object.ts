/** The facts of a listed object by listings and manifests, with as few requests as possible. */
import { hash } from "node:crypto";
import { isTombstone, type Manifest, type ManifestRecord } from "@agarose/core/format";
import { readRegion, type RegionManifest, type Survey } from "../regions/region-survey.ts";
import { majorityOf, type RegionParts, type WriteContext } from "../commit/write-context.ts";
import { readRecord, type ReadHow } from "../objects/manifests.ts";
import { askRegions } from "../regions/ask-regions.ts";
import type { Store } from "../buckets/store.ts";
import type { KeyGroup, RegionObject } from "./key-groups.ts";

/** The ETag that a majority lists and no region contradicts. Equal ETags are equal manifests. */
export function commonEtag({ manifests }: KeyGroup, { stores }: RegionParts): string | undefined {
  const etag = manifests[0]?.etag;
  const isCommon = manifests.length >= majorityOf(stores) && manifests.every((manifest) => manifest.etag === etag);
  return isCommon ? etag : undefined;
}

/** The ETag that all regions list. */
export function etagOfAll(group: KeyGroup, context: RegionParts): string | undefined {
  return group.manifests.length === context.stores.length ? commonEtag(group, context) : undefined;
}

/**
 * The current manifest of a listed key: one request where the regions list one ETag, else a strong read, which throws
 * as `readRecord` does. Undefined when the object was removed.
 */
export async function currentManifest(
  group: KeyGroup,
  context: WriteContext,
  how: ReadHow = {},
): Promise<Manifest | undefined> {
  const common = await commonRecord(group, context);
  const record = common ?? (await readRecord(group.key, context, how)).record;
  return record === undefined || isTombstone(record) ? undefined : record;
}

/**
 * * The manifest of all regions for a listed key, by one request; undefined where they differ or none answers. A region
 * that is late brings a request to each.
 */
export async function commonRecord(group: KeyGroup, context: RegionParts): Promise<ManifestRecord | undefined> {
  const etag = commonEtag(group, context);
  return etag === undefined ? undefined : listedRecord(etag, group, context);
}

/** The entry of a majority for a key, as `commonRecord` reads it, though other regions may hold something else. */
export async function majorityRecord(group: KeyGroup, context: RegionParts): Promise<ManifestRecord | undefined> {
  const etag = majorityEtag(group, context);
  return etag === undefined ? undefined : listedRecord(etag, group, context);
}

/** The ETag that a majority lists, whatever others list. */
export function majorityEtag({ manifests }: KeyGroup, { stores }: Pick<RegionParts, "stores">): string | undefined {
  const etags = manifests.flatMap(({ etag }) => etag ?? []);
  return etags.find((one) => etags.filter((other) => other === one).length >= majorityOf(stores));
}

async function listedRecord(
  etag: string,
  { key, manifests }: KeyGroup,
  context: RegionParts,
): Promise<ManifestRecord | undefined> {
  const listing = manifests.filter((manifest) => manifest.etag === etag);
  return recordOf(etag, key, { ...context, stores: listing.map(({ store }) => store) });
}

/**
 * The manifest that has an ETag, from the first region of `stores` that sends it; undefined where none does. What has
 * the MD5 that a majority has listed is known to be theirs, whatever the region is.
 */
export async function recordOf(etag: string, key: string, context: RegionParts): Promise<ManifestRecord | undefined> {
  return (await manifestOf(etag, key, context))?.record;
}

/** The manifest of a key that all regions list by one ETag; undefined where none sends that. */
export async function listedSurvey(etag: string, key: string, context: RegionParts): Promise<Survey | undefined> {
  const found = await manifestOf(etag, key, context);
  if (!found) return undefined;
  const regions = context.stores.map((store) => ({ ...found, store, etag }));
  return { regions, newest: found.record, generation: found.record!.generation };
}

/** The MD5 in an ETag, as of stores that encrypt nothing by themselves, in lower-case hex. */
export function md5In(etag: string | undefined): string | undefined {
  return /^"?([\da-f]{32})"?$/i.exec(etag ?? "")?.[1]?.toLowerCase();
}

async function manifestOf(etag: string, key: string, context: RegionParts): Promise<RegionManifest | undefined> {
  const md5 = md5In(etag);
  if (md5 === undefined) return undefined;
  // Spread over the regions by key.
  const { stores } = context;
  const first = key.length % stores.length;
  const holders = [...stores.slice(first), ...stores.slice(0, first)];
  const awaited = holders.filter(({ region }) => !context.breaker.isOpen(region.name));
  const read = (store: Store, signal: AbortSignal): Promise<RegionManifest> =>
    readRegion(key, store, signal, context.trust);
  // The listing may be older than what the region has now, and a region may say anything of what it sends.
  const isGood = ({ record, bytes }: RegionManifest): boolean => record !== undefined && hash("md5", bytes!) === md5;
  const outcomes = await askRegions(awaited, read, { enough: 1, isGood }, context);
  return outcomes.flatMap(({ value }) => (value && isGood(value) ? value : []))[0];
}

/**
 * The shortest tombstone and the shortest object that a reader takes, without the key. Every reader refuses an object
 * without the fields that a tombstone lacks, so the shortest object is longer than the longest tombstone.
 */
const [TOMBSTONE, OBJECT] = [
  '{"agarose":2,"key":,"generation":1,"modified":"2026-01-02T03:04:05Z","deleted":true,"crc32":"00000000"}',
  `{"agarose":2,"key":,"generation":1,"modified":"2026-01-02T03:04:05Z","upload":"${"0".repeat(32)}","bytes":0,` +
    `"contentType":"","headers":{},"k":1,"m":0,"stripeBytes":1,"blockBytes":1,"sha256":"${"0".repeat(64)}",` +
    `"placement":["r"],"version":"${"0".repeat(32)}","hashesSha256":"${"0".repeat(64)}","hashes":[],` +
    `"crc32":"00000000"}`,
];
/** Nobody writes longer ones than this and twice their name, but the format allows them. */
const TOMBSTONE_BYTES_MAX = 400;

/** Whether an object of this length may be a tombstone. Some manifests are as short. */
export function mayBeTombstone({ bytes, name }: Pick<RegionObject, "bytes" | "name">): boolean {
  return bytes <= TOMBSTONE_BYTES_MAX + 2 * name.length;
}

/** Whether a manifest of this length is a tombstone, unless it is damaged. */
export function mustBeTombstone(key: string, { bytes }: Pick<RegionObject, "bytes">): boolean {
  const rest = bytes - Buffer.byteLength(JSON.stringify(key));
  return rest >= TOMBSTONE.length && rest < OBJECT.length;
}
