/**
 * The versions of a key that manifests in any region still name or that its history keeps, and what is left of their
 * chunks.
 */
import { shownBytes } from "@agarose/core/content";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import { isDamage, type UnreachableRegion } from "../objects/verify-object.ts";
import { listChunks } from "../objects/chunk-listing.ts";
import { compareAge, surveyRegions, type RegionManifest } from "../regions/region-survey.ts";
import type { RegionParts, WriteContext } from "../commit/write-context.ts";
import { keptVersions, problemsOf, type KeptVersion } from "./kept-versions.ts";

/**
 * - `whole`: every chunk is listed with its length, or the object has none.
 * - `damaged`: at least k chunks are.
 * - `unreadable`: fewer than k are, and every region has answered.
 * - `unchecked`: some regions did not answer, so it may be whole.
 * - `deleted`: a tombstone, which says that the object was removed.
 */
export type VersionState = "whole" | "damaged" | "unreadable" | "unchecked" | "deleted";

/** One version, as the regions hold it. */
export interface VersionEntry {
  readonly generation: number;
  /** ISO 8601, UTC. */
  readonly modified: string;
  /** Undefined, like all that follows from the content, of a tombstone. */
  readonly version?: string;
  /** Of the content. */
  readonly bytes?: number;
  readonly k?: number;
  readonly m?: number;
  readonly state: VersionState;
  /** Chunks that are listed with their length. */
  readonly chunksListed: number;
  /** Chunks that the manifest places. */
  readonly chunks: number;
  /** The regions whose manifest is of this version. */
  readonly regions: readonly string[];
  /** Of a version that was replaced and is kept: until when at least, ISO 8601, UTC, by the clocks of the regions. */
  readonly keptUntil?: string;
}

/** The versions of a key, and the regions that may have others. */
export interface Versions {
  /** The newest first. */
  readonly versions: readonly VersionEntry[];
  /** Regions whose manifest could not be read or used. */
  readonly unknown: readonly UnreachableRegion[];
  /** Regions that did not say what they keep. */
  readonly historyProblems: readonly UnreachableRegion[];
}

/**
 * Lists the versions of a key. It lists chunks and reads none.
 *
 * @throws as `surveyRegions` does.
 */
export async function listVersions(key: string, context: WriteContext): Promise<Versions> {
  const { regions } = await surveyRegions(key, context);
  const { versions: kept, problems } = await keptVersions(key, context.stores.length, context);
  const unknown = regions.filter(({ state }) => state !== "sound" && state !== "absent");
  return {
    versions: await entriesOf(regions, kept, context),
    unknown: unknown.map(({ store, problem }) => ({ region: store.region.name, problem: problem?.message ?? "" })),
    historyProblems: problemsOf(problems),
  };
}

async function entriesOf(
  regions: readonly RegionManifest[],
  kept: readonly KeptVersion[],
  context: RegionParts,
): Promise<VersionEntry[]> {
  const held = regions.flatMap(({ store, record }) => (record ? [{ record, region: store.region.name }] : []));
  const versions = [...Map.groupBy(held, ({ record }) => idOf(record)).values()].map((copies) => ({
    record: copies[0]!.record,
    regions: copies.map(({ region }) => region),
  }));
  const newest = versions.toSorted((a, b) => compareAge(b.record, a.record))[0]?.record;
  const until = new Map(
    kept
      // The copy that a put leaves which was undone is of a version that nothing has replaced.
      .filter(({ manifest }) => !newest || isTombstone(newest) || manifest.upload !== newest.upload)
      .map(({ manifest, keptUntilMs }) => [idOf(manifest), new Date(keptUntilMs).toISOString()]),
  );
  const known = new Set(versions.map(({ record }) => idOf(record)));
  const others = kept
    .map(({ manifest }) => ({ record: manifest, regions: [] }))
    .filter(({ record }) => until.has(idOf(record)) && !known.has(idOf(record)));
  const all = [...versions, ...others].toSorted((a, b) => compareAge(b.record, a.record));
  return Promise.all(
    all.map(async ({ record, regions: own }) => {
      const keptUntil = until.get(idOf(record));
      return { ...(await describe(record, own, context)), ...(keptUntil !== undefined && { keptUntil }) };
    }),
  );
}

function idOf(record: ManifestRecord): string {
  return `${record.generation} ${record.modified}`;
}

async function describe(
  record: ManifestRecord,
  regions: readonly string[],
  context: RegionParts,
): Promise<VersionEntry> {
  const { generation, modified } = record;
  if (isTombstone(record)) return { generation, modified, state: "deleted", chunksListed: 0, chunks: 0, regions };
  const { version, k, m } = record;
  const chunks = await listChunks(record, context);
  const chunksListed = chunks.filter(({ code }) => code === undefined).length;
  const isUnknown = chunks.some(({ code }) => code !== undefined && !isDamage({ code }));
  let state: VersionState = "damaged";
  if (chunksListed === chunks.length) state = "whole";
  else if (isUnknown) state = "unchecked";
  else if (chunksListed < k) state = "unreadable";
  const bytes = shownBytes(record);
  return { generation, modified, version, bytes, k, m, state, chunksListed, chunks: chunks.length, regions };
}
