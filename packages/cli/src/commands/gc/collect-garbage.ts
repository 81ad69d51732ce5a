/**
 * Finds uploads that no manifest names, and removes them in two runs: the first marks them, a later one deletes them.
 *
 * Readers go by a manifest for a while after it was replaced, and a put has chunks before it has a manifest. The time
 * that counts is therefore the time since the mark, and the manifests are read again before the deletion. A put can
 * commit a marked upload, and another put replace that one. So a mark says which manifests the regions had, and counts
 * only where they are the same. Else a second mark counts. Ages are those by the clocks of the regions.
 */
import { hash } from "node:crypto";
import {
  acceptUnsigned,
  INLINE_BYTES_MAX,
  isTombstone,
  toAgaroseError,
  type Clock,
  type ManifestRecord,
} from "@agarose/core";
import { Breaker, isConditionFailed } from "../../lib/objects/commit/ask-regions.ts";
import { garbageName } from "../../lib/objects/commit/names.ts";
import { surveyAll, type RegionManifest } from "../../lib/objects/commit/region-survey.ts";
import { majorityOf } from "../../lib/objects/commit/write-context.ts";
import type { Store } from "../../lib/store/store.ts";
import { keyGroups, type KeyGroup, type RegionObject } from "../../lib/walk/key-groups.ts";
import { readRegionClocks, type AgeOf } from "./region-clocks.ts";

/** What to search, and what to do about it. */
export interface GarbageSearch {
  readonly stores: readonly Store[];
  /** Begins the keys to look at; "" for all. */
  readonly prefix: string;
  /** How long a mark must have been there before its upload is deleted. */
  readonly olderThanMs: number;
  /** Whether to mark and delete, or only to look. */
  readonly removes: boolean;
  /**
   * Whether to remove old tombstones as well. Their keys then begin at generation 1 again, below old manifests that a
   * hostile bucket may have kept. Default false.
   */
  readonly forgets?: boolean;
  readonly nowMs: () => number;
  readonly clock: Clock;
  /** Makes a name that no other run uses. */
  readonly newName: () => string;
  readonly signal: AbortSignal;
  /** Receives each upload once it is done with, so that memory does not grow with them. */
  readonly onUpload: (upload: GarbageUpload) => unknown;
}

/** An upload that no manifest names. */
export interface GarbageUpload {
  readonly key: string;
  readonly upload: string;
  readonly chunks: number;
  readonly bytes: number;
  /**
   * - `unmarked`: found, and nothing was done.
   * - `marked`: marked now.
   * - `waiting`: its mark is too young.
   * - `removed`: deleted.
   * - `left`: some of it could not be deleted.
   */
  readonly state: "unmarked" | "marked" | "waiting" | "removed" | "left";
}

/** What was found and done. */
export interface GarbageReport {
  /** How many were found, and their bytes. */
  readonly found: number;
  readonly bytes: number;
  /** Claims to generations that are committed, and tombstones to be forgotten that every region has had for 30 days. */
  readonly claimsRemoved: number;
  readonly tombstonesRemoved: number;
  /** Keys of which nothing was touched, because a region could not say what it names. */
  readonly skipped: readonly { readonly key: string; readonly problem: string }[];
  /** What was to be removed and could not be. */
  readonly leftovers: readonly { readonly region: string; readonly name: string; readonly problem: string }[];
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends readonly (infer U)[] ? U[] : T[K] };

const HOUR_MS = 3_600_000;
/** In place of a fingerprint: a run found the upload without a manifest a second time, a day after it was marked. */
const SECOND_MARK = "second";
const FINGERPRINT_LENGTH = 16;
const TOMBSTONE_MS_MIN = 30 * 24 * HOUR_MS;
/** A manifest without hashes, of an empty or inline object or a tombstone, is shorter than this and its name. */
const SMALL_BYTES = 2_000 + Math.ceil(INLINE_BYTES_MAX / 3) * 4;

/**
 * Searches, and marks and deletes on request.
 *
 * @throws SOURCE_FAILED, STORE_FAILED or CREDENTIALS_REFUSED when a region cannot be listed, and CLOCKS_DISAGREE before
 *   anything is marked or deleted.
 */
export async function collectGarbage(search: GarbageSearch): Promise<GarbageReport> {
  const report: Mutable<GarbageReport> = {
    found: 0,
    bytes: 0,
    claimsRemoved: 0,
    tombstonesRemoved: 0,
    skipped: [],
    leftovers: [],
  };
  const breaker = new Breaker(search.clock);
  const ageOf = search.removes ? await readRegionClocks(search) : undefined;
  for await (const group of keyGroups(search.stores, search.prefix, search.signal)) {
    if (!isSuspect(group, search)) continue;
    const regions = await surveyAll(group.key, { ...search, trust: acceptUnsigned, breaker }, search.stores.length);
    const unknown = regions.find(({ state }) => state === "unreachable" || state === "invalid");
    if (unknown) {
      const problem = `${unknown.store.region.name}: ${unknown.problem?.message}`;
      report.skipped.push({ key: group.key, problem });
      continue;
    }
    await cleanKey(group, regions, search, ageOf, report);
  }
  return report;
}

/** Whether a group can hold garbage: an upload more than its manifest names, a mark, a claim, or an old tombstone. */
function isSuspect({ chunks, manifests, claims, marks }: KeyGroup, { forgets = false }: GarbageSearch): boolean {
  if (claims.length + marks.length > 0 || uploadsOf(chunks).size > 1) return true;
  if (chunks.length === 0 && !forgets) return false;
  return manifests.length === 0 || manifests.some(({ bytes, name }) => bytes < SMALL_BYTES + 3 * name.length);
}

async function cleanKey(
  group: KeyGroup,
  regions: readonly RegionManifest[],
  search: GarbageSearch,
  ageOf: AgeOf | undefined,
  report: Mutable<GarbageReport>,
): Promise<void> {
  const { key, chunks, marks } = group;
  const { olderThanMs } = search;
  // Uploads that any manifest names are kept, whichever writer it is from.
  const named = new Set(regions.flatMap(({ record }) => (record && !isTombstone(record) ? record.upload : [])));
  const garbage = [...uploadsOf(chunks)].filter(([upload]) => !named.has(upload));
  const manifests = fingerprintOf(regions);
  const counts = (object: RegionObject): boolean => [manifests, SECOND_MARK].includes(parseMark(object).manifests);
  const isOld = (object: RegionObject): boolean => ageOf !== undefined && ageOf(object) >= olderThanMs;
  for (const [upload, objects] of garbage) {
    const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
    const own = marks.filter((object) => parseMark(object).upload === upload);
    const holders = [...new Set(objects.map(({ store }) => store))];
    // Each region vouches for its own marks: one that lists an old mark that it never got must not end the wait of all.
    const marksIn = (store: Store): RegionObject[] => own.filter((object) => object.store === store);
    const unmarked = holders.filter((store) => marksIn(store).length === 0);
    const uncounted = holders.filter((store) => !marksIn(store).some(counts));
    let state: GarbageUpload["state"] = unmarked.length > 0 ? "unmarked" : "waiting";
    if (ageOf && unmarked.length > 0) {
      await mark(garbageName(key, upload, manifests), unmarked, search);
      state = "marked";
    } else if (uncounted.length > 0) {
      const again = uncounted.filter((store) => marksIn(store).some(isOld));
      await mark(garbageName(key, upload, SECOND_MARK), again, search);
    } else if (own.filter(counts).every(isOld)) {
      const left = await remove(objects, report);
      if (left === 0) await remove(own, report);
      state = left === 0 ? "removed" : "left";
    }
    report.found++;
    report.bytes += bytes;
    await search.onUpload({ key, upload, chunks: objects.length, bytes, state });
  }
  if (!ageOf) return;
  // Marks of uploads that are named again, or gone.
  const ours = new Set(garbage.map(([upload]) => upload));
  await remove(
    marks.filter((object) => !ours.has(parseMark(object).upload)),
    report,
  );
  await cleanClaims(group, regions, ageOf, report);
  if (search.forgets) await cleanTombstone(group, regions, ageOf, report);
}

/** Names what the regions hold of a key. It changes with every commit, and never comes again. */
function fingerprintOf(regions: readonly RegionManifest[]): string {
  const held = regions.flatMap(({ record }) => (record ? `${record.generation} ${record.modified}` : []));
  return hash("sha256", [...new Set(held)].toSorted().join()).slice(0, FINGERPRINT_LENGTH);
}

/** Stores a mark in regions that have chunks of the upload. An older mark of the name stays. */
async function mark(name: string, stores: readonly Store[], { nowMs, signal }: GarbageSearch): Promise<void> {
  const body = Buffer.from(JSON.stringify({ markedAt: new Date(nowMs()).toISOString() }));
  const options = { bytes: body.length, contentType: "application/json", ifNoneMatch: "*", signal } as const;
  for (const store of stores) {
    await store.put(name, body, options).catch((error: unknown) => {
      if (!isConditionFailed(error)) throw error;
    });
  }
}

/** Removes the claims to generations that a majority has passed, an hour after they were made. */
async function cleanClaims(
  { claims }: KeyGroup,
  regions: readonly RegionManifest[],
  ageOf: AgeOf,
  report: Mutable<GarbageReport>,
): Promise<void> {
  const generations = regions.map(({ record }) => record?.generation ?? 0).toSorted((a, b) => b - a);
  const committed = generations[majorityOf(regions) - 1]!;
  const old = claims.filter((claim) => Number(claim.suffix) <= committed && ageOf(claim) >= HOUR_MS);
  report.claimsRemoved += old.length - (await remove(old, report));
}

/** Removes the manifests of an object that was removed long ago, once nothing of it is left. */
async function cleanTombstone(
  { chunks, claims, marks, manifests }: KeyGroup,
  regions: readonly RegionManifest[],
  ageOf: AgeOf,
  report: Mutable<GarbageReport>,
): Promise<void> {
  if (chunks.length + claims.length + marks.length > 0 || manifests.length < regions.length) return;
  const records = regions.map(({ record }) => record);
  if (!records.every((record): record is ManifestRecord => record !== undefined && isTombstone(record))) return;
  if (records.some(({ generation }) => generation !== records[0]!.generation)) return;
  // Since its region has it: the time that it names is that of the machine that removed the object.
  if (manifests.some((tombstone) => ageOf(tombstone) < TOMBSTONE_MS_MIN)) return;
  const name = manifests[0]!.name;
  for (const { store, etag } of regions) {
    try {
      await store.removeMatching(name, etag ?? "*");
    } catch (error) {
      if (isConditionFailed(error)) continue;
      report.leftovers.push({ region: store.region.name, name, problem: toAgaroseError(error).message });
    }
  }
  report.tombstonesRemoved++;
}

/** Removes objects and returns how many could not be removed. */
async function remove(objects: readonly RegionObject[], report: Mutable<GarbageReport>): Promise<number> {
  let left = 0;
  await Promise.all(
    [...Map.groupBy(objects, ({ store }) => store)].map(async ([store, own]) => {
      const failures = await store.remove(own.map(({ name }) => name));
      left += failures.length;
      report.leftovers.push(...failures.map((failure) => ({ region: store.region.name, ...failure })));
    }),
  );
  return left;
}

/** `manifests` is "" in a mark of an earlier release. */
function parseMark({ suffix }: RegionObject): { readonly upload: string; readonly manifests: string } {
  const [upload = "", manifests = ""] = suffix.split(".");
  return { upload, manifests };
}

/** The chunks of each upload. Their names end in `<upload>/<chunk>`. */
function uploadsOf(chunks: readonly RegionObject[]): Map<string, RegionObject[]> {
  return Map.groupBy(chunks, ({ suffix }) => suffix.slice(0, suffix.indexOf("/")));
}
