/**
 * Finds uploads that no manifest names, and removes them in two runs: the first marks them, a later one deletes them.
 *
 * Readers go by a manifest for a while after it was replaced, and a put has chunks before it has a manifest. The time
 * that counts is therefore the time since the mark, and the manifests are reread before the deletion. A put can
 * commit a marked upload, and another put replace that one. So a mark says which manifests the regions had, and counts
 * only where they are the same. Else a second mark counts. Ages are those by the clocks of the regions.
 *
 * A put may take longer than a mark has to wait. It stores its claim again until it has committed. So the claims are
 * listed before the manifests: an upload is named by the one or the other for as long as its writer lives.
 */
import { AgaroseError } from "@agarose/core";
import { acceptUnsigned, INLINE_BYTES_MAX, isTombstone } from "@agarose/core/format";
import { batchesIn } from "../../commit/batches.ts";
import { DEAD_MS } from "../../commit/lease.ts";
import { majorityOf, withNewBreaker, type WriteContext } from "../../commit/write-context.ts";
import { keyGroups, KINDS_DEFAULT, type KeyGroup } from "../../listing/key-groups.ts";
import { commonRecord } from "../../listing/listed-object.ts";
import { mapOrdered } from "../../listing/adaptive-pool.ts";
import { readRegionClocks } from "../../listing/region-clocks.ts";
import { askRegions } from "../../regions/ask-regions.ts";
import { surveyAll } from "../../regions/region-survey.ts";
import { cleanKey, uploadsOf } from "./clean-key.ts";
import { viewKey, type ViewContext } from "./key-view.ts";
import type { GarbageReport, GarbageSearch, Mutable } from "./search.ts";

const KEYS_AT_A_TIME = 16;
/** A manifest without hashes, of an empty or inline object or a tombstone, is shorter than this and its name. */
const SMALL_BYTES = 2_000 + Math.ceil(INLINE_BYTES_MAX / 3) * 4;

/** The report of a search at its start. */
export const NOTHING_FOUND: GarbageReport = {
  found: 0,
  bytes: 0,
  claimsRemoved: 0,
  tombstonesRemoved: 0,
  copiesRemoved: 0,
  skipped: [],
  leftovers: [],
};

/**
 * Searches, and marks and deletes on request.
 *
 * @throws USAGE to forget what was removed beside an origin, SOURCE_FAILED, STORE_FAILED or CREDENTIALS_REFUSED when a
 *   region cannot be listed, and CLOCKS_DISAGREE before anything is marked or deleted.
 */
export async function collectGarbage(search: GarbageSearch, parts: WriteContext): Promise<GarbageReport> {
  if (search.forgets && parts.config.origin) {
    const message = "the origin has objects that were removed here, and only their tombstones say so";
    throw new AgaroseError("USAGE", `${message}: remove \`origin\` from the configuration before you forget them`);
  }
  const report = structuredClone(search.resumed?.report ?? NOTHING_FOUND) as Mutable<GarbageReport>;
  const ageOf = search.removes ? await readRegionClocks(parts) : undefined;
  const context = { ...withNewBreaker(parts), ...search, trust: acceptUnsigned, ageOf };
  const { stores, signal, config, shard } = parts;
  const { prefix, resumed } = search;
  const kinds = config.keep.length > 0 ? [...KINDS_DEFAULT, "history" as const] : KINDS_DEFAULT;
  const groups = keyGroups(stores, prefix, signal, { kinds, shard, ...(resumed && { after: resumed.after }) });
  const judged = mapOrdered(groups, KEYS_AT_A_TIME, async (group) => {
    return { group, isCleared: !isSuspect(group, search) || (await hasOneNamedUpload(group, context)) };
  });
  for await (const { group, isCleared } of judged) {
    if (!isCleared) await lookAt(group, context, report);
    await search.onKey?.(group.key, report);
  }
  // Batches name many keys, so one of the shards has them.
  if (prefix === "" && (shard?.index ?? 1) === 1) await cleanBatches(context, report);
  return report;
}

/** Cleans a key, unless a region cannot say what it names. */
async function lookAt(group: KeyGroup, context: ViewContext, report: Mutable<GarbageReport>): Promise<void> {
  const view = await viewKey(group, context);
  if (view instanceof AgaroseError) report.skipped.push({ key: group.key, problem: view.message });
  else await cleanKey(view, context, report);
}

/**
 * Whether a group can hold garbage: an upload more than its manifest names, a mark, a claim, a copy, or an old
 * tombstone.
 */
function isSuspect(group: KeyGroup, { forgets = false }: GarbageSearch): boolean {
  const { chunks, manifests, claims, marks, history } = group;
  if (claims.length + marks.length + history.length > 0 || uploadsOf(chunks).size > 1) return true;
  if (chunks.length === 0 && !forgets) return false;
  return manifests.length === 0 || manifests.some(({ bytes, name }) => bytes < SMALL_BYTES + 3 * name.length);
}

/**
 * Whether the manifest that all regions list names the only upload that there is. One region answers for all, because a
 * wrong answer hides garbage and deletes nothing.
 */
async function hasOneNamedUpload(group: KeyGroup, context: WriteContext): Promise<boolean> {
  const { chunks, manifests, claims, marks, history } = group;
  const uploads = [...uploadsOf(chunks).keys()];
  if (uploads.length !== 1 || manifests.length === 0) return false;
  if (claims.length + marks.length + history.length > 0) return false;
  const record = await commonRecord(group, context);
  return record !== undefined && !isTombstone(record) && record.upload === uploads[0];
}

/**
 * Removes the batches that are two hours old in every region, once a majority holds the generation that they claim of
 * each of their keys, or a later one. Until then a request that is late may still write it.
 */
export async function cleanBatches(context: ViewContext, report: Mutable<GarbageReport>): Promise<void> {
  const { ageOf, stores } = context;
  if (!ageOf) return;
  const outcomes = await askRegions(
    stores,
    (store, signal) => batchesIn(store, signal),
    { enough: stores.length },
    context,
  );
  const listed = outcomes.flatMap(({ value = [] }) => value);
  for (const [name, own] of Map.groupBy(listed, (batch) => batch.name)) {
    if (own.some((batch) => ageOf(batch) < DEAD_MS)) continue;
    const entries = own.flatMap((batch) => [...batch.entries]);
    if (!(await arePassed(new Map(entries.map(([key, { generation }]) => [key, generation])), context))) continue;
    for (const { store } of own)
      report.leftovers.push(
        ...(await store.remove([name])).map((failure) => ({ region: store.region.name, ...failure })),
      );
    report.claimsRemoved++;
  }
}

async function arePassed(generations: ReadonlyMap<string, number>, context: ViewContext): Promise<boolean> {
  const { stores } = context;
  for (const [key, generation] of generations) {
    const regions = await surveyAll(key, context, stores.length);
    const passed = regions.filter(({ record }) => (record?.generation ?? 0) >= generation).length;
    if (passed < majorityOf(stores)) return false;
  }
  return true;
}
