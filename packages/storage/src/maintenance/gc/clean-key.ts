/** Marks and deletes what nothing needs of one key. */
import { hash } from "node:crypto";
import { toAgaroseError } from "@agarose/core";
import { isTombstone, type ManifestRecord } from "@agarose/core/format";
import { isConditionFailed } from "../../regions/ask-regions.ts";
import { DEAD_MS } from "../../commit/lease.ts";
import { garbageName } from "../../commit/names.ts";
import type { RegionManifest } from "../../regions/region-survey.ts";
import { majorityOf } from "../../commit/write-context.ts";
import type { ListedObject, Store } from "../../buckets/store.ts";
import { namedUploads } from "../../objects/chunk-listing.ts";
import type { RegionObject } from "../../listing/key-groups.ts";
import type { KeyView, ViewContext } from "./key-view.ts";
import type { AgeOf } from "../../listing/region-clocks.ts";
import type { GarbageReport, GarbageUpload, Mutable } from "./search.ts";
import { putRecord } from "../../buckets/small-record.ts";

/** In place of a fingerprint: a run found the upload without a manifest a second time, a day after it was marked. */
const SECOND_MARK = "second";
const FINGERPRINT_LENGTH = 16;
const TOMBSTONE_MS_MIN = 30 * 24 * 3_600_000;

/** Marks and deletes the garbage of a key, and adds it to `report`. */
export async function cleanKey(view: KeyView, context: ViewContext, report: Mutable<GarbageReport>): Promise<void> {
  const { group, regions, writers, history } = view;
  const { key, chunks, marks } = group;
  const { olderThanMs, ageOf, clock } = context;
  // Uploads that any manifest names are kept, whichever writer it is from, and those of the history.
  const current = regions.flatMap(({ record }) => (record && !isTombstone(record) ? namedUploads(record) : []));
  const named = new Set([...current, ...history.uploads]);
  const garbage = [...uploadsOf(chunks)].filter(([upload]) => !named.has(upload));
  const manifests = fingerprintOf(regions);
  const counts = (object: RegionObject): boolean => [manifests, SECOND_MARK].includes(parseMark(object).manifests);
  const isOld = (object: RegionObject): boolean => ageOf !== undefined && ageOf(object) >= olderThanMs;
  const states = new Map<string, GarbageUpload["state"]>();
  const due = new Map<string, { readonly objects: readonly RegionObject[]; readonly own: readonly RegionObject[] }>();
  for (const [upload, objects] of garbage) {
    const own = marks.filter((object) => parseMark(object).upload === upload);
    const holders = [...new Set(objects.map(({ store }) => store))];
    // Each region vouches for its own marks: one that lists an old mark that it never got must not end the wait of all.
    const marksIn = (store: Store): RegionObject[] => own.filter((object) => object.store === store);
    const unmarked = holders.filter((store) => marksIn(store).length === 0);
    const uncounted = holders.filter((store) => !marksIn(store).some(counts));
    let state: GarbageUpload["state"] = unmarked.length > 0 ? "unmarked" : "waiting";
    if (ageOf && unmarked.length > 0) {
      await mark(garbageName(key, upload, manifests), unmarked, context);
      state = "marked";
    } else if (uncounted.length > 0) {
      const again = uncounted.filter((store) => marksIn(store).some(isOld));
      await mark(garbageName(key, upload, SECOND_MARK), again, context);
    } else if (own.filter(counts).every(isOld) && !writers.uploads.has(upload)) {
      due.set(upload, { objects, own });
    }
    states.set(upload, state);
  }
  if (clock.now() >= writers.untilMs) due.clear();
  // The versions of a key together: a history has many.
  const left = await remove(
    [...due.values()].flatMap(({ objects }) => objects),
    report,
  );
  for (const [upload, { objects }] of due)
    states.set(upload, objects.some((one) => left.has(one)) ? "left" : "removed");
  const removed = [...due].filter(([upload]) => states.get(upload) === "removed");
  await remove(
    removed.flatMap(([, { own }]) => own),
    report,
  );
  for (const [upload, objects] of garbage) {
    const bytes = objects.reduce((sum, object) => sum + object.bytes, 0);
    const state = states.get(upload)!;
    report.found++;
    report.bytes += bytes;
    await context.onUpload({ key, upload, chunks: objects.length, bytes, state });
  }
  if (!ageOf) return;
  // Marks of uploads that are named again, or gone.
  const ours = new Set(garbage.map(([upload]) => upload));
  await remove(
    marks.filter((object) => !ours.has(parseMark(object).upload)),
    report,
  );
  // After the chunks: a run that ends in between leaves a copy for the next one.
  const over = history.expired.filter(({ upload }) => (states.get(upload) ?? "removed") === "removed");
  report.copiesRemoved += over.length - (await remove(over, report)).size;
  await cleanClaims(view, ageOf, report);
  if (context.forgets) await cleanTombstone(view, ageOf, report);
}

/** Names what the regions hold of a key. It changes with every commit, and never comes again. */
function fingerprintOf(regions: readonly RegionManifest[]): string {
  const held = regions.flatMap(({ record }) => (record ? `${record.generation} ${record.modified}` : []));
  return hash("sha256", [...new Set(held)].toSorted().join()).slice(0, FINGERPRINT_LENGTH);
}

/** Stores a mark in regions that have chunks of the upload. An older mark of the name stays. */
async function mark(name: string, stores: readonly Store[], { nowMs, signal }: ViewContext): Promise<void> {
  const body = JSON.stringify({ markedAt: new Date(nowMs()).toISOString() });
  for (const store of stores) {
    await putRecord(store, name, body, { ifNoneMatch: "*", signal }).catch((error: unknown) => {
      if (!isConditionFailed(error)) throw error;
    });
  }
}

/** Removes the claims to generations that a majority has passed, once their writers have ended or died. */
async function cleanClaims(
  { group: { claims }, regions }: KeyView,
  ageOf: AgeOf,
  report: Mutable<GarbageReport>,
): Promise<void> {
  const generations = regions.map(({ record }) => record?.generation ?? 0).toSorted((a, b) => b - a);
  const committed = generations[majorityOf(regions) - 1]!;
  const old = claims.filter((claim) => Number(claim.suffix) <= committed && ageOf(claim) >= DEAD_MS);
  report.claimsRemoved += old.length - (await remove(old, report)).size;
}

/** Removes the manifests of an object that was removed long ago, once nothing of it is left. */
async function cleanTombstone(
  { group, regions, history }: KeyView,
  ageOf: AgeOf,
  report: Mutable<GarbageReport>,
): Promise<void> {
  const { chunks, claims, marks, manifests } = group;
  if (chunks.length + claims.length + marks.length > 0 || manifests.length < regions.length) return;
  // Its copies would be of generations that come again.
  if (history.uploads.size + history.expired.length > 0) return;
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

/** Removes objects, those of a region by one request, and returns those that could not be removed. */
async function remove<T extends ListedObject & { readonly store: Store }>(
  objects: readonly T[],
  report: Mutable<GarbageReport>,
): Promise<ReadonlySet<T>> {
  const left = new Set<T>();
  await Promise.all(
    [...Map.groupBy(objects, ({ store }) => store)].map(async ([store, own]) => {
      const failures = await store.remove(own.map(({ name }) => name));
      for (const failure of failures) left.add(own.find(({ name }) => name === failure.name)!);
      report.leftovers.push(...failures.map((failure) => ({ region: store.region.name, ...failure })));
    }),
  );
  return left;
}

function parseMark({ suffix }: RegionObject): { readonly upload: string; readonly manifests: string } {
  const [upload = "", manifests = ""] = suffix.split(".");
  return { upload, manifests };
}

/** The chunks of each upload. Their names end in `<upload>/<chunk>`. */
export function uploadsOf(chunks: readonly RegionObject[]): Map<string, RegionObject[]> {
  return Map.groupBy(chunks, ({ suffix }) => suffix.slice(0, suffix.indexOf("/")));
}
