/**
 * * The size of all keys below a prefix, in one walk over the listings of all regions: which of it is objects, which is
 * their history, and which is left of uploads that no manifest names.
 */
import { shownBytes } from "@agarose/core/content";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import { keepMsOf, uploadOf } from "../commit/history.ts";
import type { WriteContext } from "../commit/write-context.ts";
import type { Config } from "../config/config.ts";
import { keyGroups, type KeyGroup, type RegionObject } from "../listing/key-groups.ts";
import { commonRecord } from "../listing/listed-object.ts";
import { mapOrdered } from "../listing/adaptive-pool.ts";
import { namedUploads } from "../objects/chunk-listing.ts";
import { newestOf, surveyAll } from "../regions/region-survey.ts";

/** Bytes in one region. */
export interface RegionBytes {
  /** Chunks and leaf lists that a manifest names. */
  readonly chunks: number;
  readonly manifests: number;
  /** Chunks, leaf lists and copies of manifests of versions that were replaced and that `keep` keeps. */
  readonly kept: number;
  /** Chunks and leaf lists that no manifest names, nor a copy that is still kept. */
  readonly orphaned: number;
  /** Claims, marks, the repair queue, and copies whose time is over. */
  readonly other: number;
}

/** The contents of one region. */
export interface RegionUse extends RegionBytes {
  readonly region: string;
  /** All of it. */
  readonly bytes: number;
  /** With `cost`; absent when the region has no price. */
  readonly usdPerMonth?: number;
  /** Why it could not be listed. */
  readonly problem?: string;
}

/** The contents of all regions. */
export type Use = Readonly<ReturnType<typeof useOf>>;

/** Measurements of a walk over all keys that begin with a prefix. */
export interface Measured {
  readonly use: Use;
  /** Keys whose chunks count as named because it is not known whether they are. */
  readonly unknown: number;
  /** The first of them, and why. */
  readonly firstUnknown?: { readonly key: string; readonly problem: string };
  /** Why a region could not be listed, by its name. */
  readonly problems: ReadonlyMap<string, string>;
}

type UsedBytes = { -readonly [K in keyof RegionBytes]: number };

const KINDS = ["chunks", "manifests", "claims", "marks", "repairs", "history"] as const;
const KEYS_AT_A_TIME = 32;
const GB = 1e9;

/** Measures all keys that begin with `prefix`, with `cost` also in dollars by the prices of the configuration. */
export async function measureUse(
  prefix: string,
  { cost = false }: { readonly cost?: boolean },
  context: WriteContext,
): Promise<Measured> {
  const problems = new Map<string, string>();
  const groups = keyGroups(context.stores, prefix, context.signal, {
    kinds: KINDS,
    shard: context.shard,
    onFailure: ({ region: { name } }, error) => {
      context.breaker.open(name);
      problems.set(name, error.message);
    },
  });
  const none: RegionBytes = { chunks: 0, manifests: 0, kept: 0, orphaned: 0, other: 0 };
  const used = new Map(context.config.regions.map(({ name }): [string, UsedBytes] => [name, { ...none }]));
  let [objects, objectBytes, unknown] = [0, 0, 0];
  let firstUnknown: Measured["firstUnknown"];
  const measured = mapOrdered(groups, KEYS_AT_A_TIME, async (group) => {
    const stores = context.stores.filter(({ region }) => !problems.has(region.name));
    const add = ({ store, bytes }: RegionObject, kind: keyof RegionBytes): void =>
      void (used.get(store.region.name)![kind] += bytes);
    return { key: group.key, ...(await measureKey(group, add, { ...context, stores })) };
  });
  for await (const { key, bytes, problem } of measured) {
    if (bytes !== undefined) objects++;
    objectBytes += bytes ?? 0;
    if (problem === undefined) continue;
    unknown++;
    firstUnknown ??= { key, problem };
  }
  const regions = context.config.regions.map((region) => {
    const problem = problems.get(region.name);
    return { ...regionUse(region, used.get(region.name)!, cost), ...(problem && { problem }) };
  });
  return { use: useOf(objects, objectBytes, regions), unknown, problems, ...(firstUnknown && { firstUnknown }) };
}

/**
 * Adds up what a listed key takes, and returns the length of its object: one request where all `stores` list the same
 * manifest, else one to each. `stores` are those that could be listed. What any region's manifest names is no orphan,
 * whichever generation it is of.
 */
async function measureKey(
  group: KeyGroup,
  add: (object: RegionObject, kind: keyof RegionBytes) => void,
  context: WriteContext,
): Promise<{ readonly bytes: number | undefined; readonly problem?: string }> {
  const { records, problem } = await recordsOf(group, context);
  const named = new Set(records.flatMap((record) => (isTombstone(record) ? [] : namedUploads(record))));
  const keeps = keptUploads(group, context);
  for (const chunk of group.chunks) {
    const upload = chunk.suffix.slice(0, chunk.suffix.indexOf("/"));
    const isOrphan = !named.has(upload) && problem === undefined;
    add(chunk, !named.has(upload) && keeps.has(upload) ? "kept" : isOrphan ? "orphaned" : "chunks");
  }
  for (const manifest of group.manifests) add(manifest, "manifests");
  for (const copy of group.history) add(copy, keeps.has(uploadOf(copy.suffix)) ? "kept" : "other");
  for (const one of [...group.claims, ...group.marks, ...group.repairs]) add(one, "other");
  const newest = newestOf(records.map((record) => ({ store: context.stores[0]!, state: "sound", record })));
  const bytes = newest === undefined || isTombstone(newest) ? undefined : shownBytes(newest);
  return { bytes, ...(problem !== undefined && { problem }) };
}

/** The uploads that `gc` leaves because a copy of their manifest is young in a region. */
function keptUploads({ key, history }: KeyGroup, { config, nowMs }: WriteContext): ReadonlySet<string> {
  const fromMs = nowMs() - keepMsOf(key, config);
  return new Set(history.filter(({ modifiedMs }) => modifiedMs > fromMs).map(({ suffix }) => uploadOf(suffix)));
}

async function recordsOf(
  group: KeyGroup,
  context: WriteContext,
): Promise<{ readonly records: readonly ManifestRecord[]; readonly problem?: string }> {
  if (group.manifests.length === 0) return { records: [] };
  const common = await commonRecord(group, context);
  if (common && group.manifests.length === context.stores.length) return { records: [common] };
  const regions = await surveyAll(group.key, context, context.stores.length);
  const records = regions.flatMap(({ record }) => record ?? []);
  const unknown = regions.find(({ state }) => state !== "sound" && state !== "absent");
  if (!unknown) return { records };
  return { records, problem: `${unknown.store.region.name}: ${unknown.problem?.message}` };
}

function regionUse(
  { name, storageUsdPerGbMonth }: Config["regions"][number],
  use: RegionBytes,
  cost: boolean,
): RegionUse {
  const bytes = use.chunks + use.manifests + use.kept + use.orphaned + use.other;
  const usdPerMonth = storageUsdPerGbMonth === undefined ? undefined : (bytes / GB) * storageUsdPerGbMonth;
  return { region: name, ...use, bytes, ...(cost && usdPerMonth !== undefined && { usdPerMonth }) };
}

function useOf(objects: number, objectBytes: number, regions: readonly RegionUse[]) {
  const sum = (of: (region: RegionUse) => number): number => regions.reduce((all, region) => all + of(region), 0);
  const storedBytes = sum(({ bytes }) => bytes);
  const isPriced = regions.some(({ usdPerMonth }) => usdPerMonth !== undefined);
  const orphanedUsd = ({ usdPerMonth = 0, bytes, orphaned }: RegionUse): number =>
    bytes === 0 ? 0 : (usdPerMonth * orphaned) / bytes;
  return {
    objects,
    /** Of the objects as readers see them. */
    objectBytes,
    storedBytes,
    /** Of versions that were replaced and that `keep` keeps. */
    keptBytes: sum(({ kept }) => kept),
    orphanedBytes: sum(({ orphaned }) => orphaned),
    /** Stored bytes for each byte of an object; absent when there is none. */
    ...(objectBytes > 0 && { overhead: storedBytes / objectBytes }),
    ...(isPriced && { usdPerMonth: sum(({ usdPerMonth = 0 }) => usdPerMonth), orphanedUsdPerMonth: sum(orphanedUsd) }),
    regions,
  };
}
