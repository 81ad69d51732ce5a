/**
 * What the regions hold of one key: which of it is an object, which is its history, and which is left of uploads that
 * no manifest names.
 */
import { shownBytes } from "@agarose/core/content";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import { keepMsOf, uploadOf } from "@agarose/storage/commit/history";
import { newestOf, surveyAll } from "@agarose/storage/regions/region-survey";
import type { KeyGroup, RegionObject } from "@agarose/storage/listing/key-groups";
import type { WriteContext } from "@agarose/storage/commit/write-context";
import { commonRecord } from "@agarose/storage/listing/listed-object";

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

/** What one key takes. */
export interface KeyUse {
  /** Length of the object; undefined when the key has none now. */
  readonly objectBytes: number | undefined;
  /** By the name of the region. */
  readonly regions: ReadonlyMap<string, RegionBytes>;
  /** Why chunks count as named although it is not known whether they are. */
  readonly problem?: string;
}

/** Nothing. */
export const NO_BYTES: RegionBytes = { chunks: 0, manifests: 0, kept: 0, orphaned: 0, other: 0 };

/** Adds up. */
export function addBytes(a: RegionBytes, b: RegionBytes): RegionBytes {
  return {
    chunks: a.chunks + b.chunks,
    manifests: a.manifests + b.manifests,
    kept: a.kept + b.kept,
    orphaned: a.orphaned + b.orphaned,
    other: a.other + b.other,
  };
}

/**
 * Measures a listed key: one request where all `stores` list the same manifest, else one to each. `stores` are those
 * that could be listed. What any region's manifest names is no orphan, whichever generation it is of.
 */
export async function measureKey(group: KeyGroup, context: WriteContext): Promise<KeyUse> {
  const { records, problem } = await recordsOf(group, context);
  const named = new Set(records.flatMap((record) => (isTombstone(record) ? [] : record.upload)));
  const keeps = keptUploads(group, context);
  const newest = newestOf(records.map((record) => ({ store: context.stores[0]!, state: "sound", record })));
  const regions = new Map<string, RegionBytes>();
  const add = (objects: readonly RegionObject[], kindOf: (object: RegionObject) => keyof RegionBytes): void => {
    for (const object of objects) {
      const { name } = object.store.region;
      const before = regions.get(name) ?? NO_BYTES;
      const kind = kindOf(object);
      regions.set(name, { ...before, [kind]: before[kind] + object.bytes });
    }
  };
  add(group.chunks, ({ suffix }) => {
    const upload = suffix.slice(0, suffix.indexOf("/"));
    if (named.has(upload)) return "chunks";
    if (keeps.has(upload)) return "kept";
    return problem === undefined ? "orphaned" : "chunks";
  });
  add(group.manifests, () => "manifests");
  add(group.history, ({ suffix }) => (keeps.has(uploadOf(suffix)) ? "kept" : "other"));
  add([...group.claims, ...group.marks, ...group.repairs], () => "other");
  return {
    objectBytes: newest === undefined || isTombstone(newest) ? undefined : shownBytes(newest),
    regions,
    ...(problem !== undefined && { problem }),
  };
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
