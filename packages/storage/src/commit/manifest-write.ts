/** Conditional writes of a manifest or tombstone: never over a newer one, and undone when no majority takes it. */
import { toAgaroseError, type AgaroseError } from "@agarose/core";
import { encodeManifest, manifestName, type ManifestRecord } from "@agarose/core/format";
import type { Store } from "../buckets/store.ts";
import { askRegions, isConditionFailed } from "../regions/ask-regions.ts";
import { isClaimedAbove } from "./claim.ts";
import { keeperFor } from "./history.ts";
import { compareAge, holds, readRegion, surveyRegions, type RegionManifest } from "../regions/region-survey.ts";
import { majorityOf, pause, type WriteContext } from "./write-context.ts";
import { putRecord } from "../buckets/small-record.ts";

/** The outcome of the write in one region. */
export interface RegionWrite {
  readonly store: Store;
  /** `superseded`: the region has a newer one, or another one of the same generation. */
  readonly outcome: "written" | "superseded" | "failed";
  /** The previous object. Undefined when it was never read. */
  readonly replaced?: RegionManifest;
  readonly problem?: AgaroseError;
  /** Whether the region may hold the record, or take it later, without our knowing. */
  readonly mayArrive?: boolean;
}

const ATTEMPTS_MAX = 8;

/**
 * Writes `record` to the regions given, each on the condition that it holds what was seen there. A manifest that this
 * writer cannot use is replaced only if it is known to be no other writer's. Does not reject.
 *
 * @param generationMax the newest generation that it may replace: that of which the record depends. So of two
 *   writers that saw the same version, a majority takes one at most. Default: any before its own.
 */
export async function writeRecord(
  record: ManifestRecord,
  regions: readonly RegionManifest[],
  context: WriteContext,
  generationMax = Number.POSITIVE_INFINITY,
): Promise<RegionWrite[]> {
  const bytes = encodeManifest(record);
  const forgeries = await forgeriesIn(record, regions, context);
  // Of a region that is given up, too, it must be known what a write may have replaced.
  const seen = new Map(regions.map((region) => [region.store, region]));
  const keep = keeperFor(record, context);
  const onReplace = (region: RegionManifest): Promise<void> | undefined => {
    seen.set(region.store, region);
    return keep(region);
  };
  const write = (store: Store, signal: AbortSignal): Promise<RegionWrite> =>
    writeRegion({ record, bytes, forgeries, generationMax }, seen.get(store)!, { ...context, signal }, onReplace);
  const stores = regions.map(({ store }) => store);
  const outcomes = await askRegions(stores, write, { enough: majorityOf(context.stores) }, context);
  return outcomes.map(
    ({ store, value, error }) =>
      value ?? { store, outcome: "failed", problem: error!, replaced: seen.get(store)!, mayArrive: true },
  );
}

/**
 * Which of `regions` hold a manifest of a later generation that no writer can have written in good faith: their ETags.
 *
 * A writer by another key may be about to write it to a majority. Its claim goes only once it has, so without a claim a
 * second look would show its manifest in a majority.
 */
async function forgeriesIn(
  { key, generation }: ManifestRecord,
  regions: readonly RegionManifest[],
  context: WriteContext,
): Promise<ReadonlySet<string>> {
  const later = regions.filter((region) => isLaterForeign(region, generation));
  if (later.length === 0) return new Set();
  try {
    if (await isClaimedAbove(key, generation, context)) return new Set();
    await surveyRegions(key, context);
    return new Set(later.flatMap(({ etag }) => etag ?? []));
  } catch {
    // They stay, and a repair looks at them again.
    return new Set();
  }
}

/**
 * Whether a region holds what this writer cannot use and another one may have written after generation `generation`.
 */
function isLaterForeign({ isForeign = false, stated = Number.POSITIVE_INFINITY }: RegionManifest, generation: number) {
  return isForeign && stated >= generation;
}

/**
 * Undoes the writes of a record that no majority took: what each region held before takes its place again.
 *
 * @returns the regions in which readers may still see the record.
 */
export async function rollBack(
  record: ManifestRecord,
  writes: readonly RegionWrite[],
  context: WriteContext,
): Promise<Store[]> {
  const bytes = encodeManifest(record);
  const touched = writes.filter(({ outcome, mayArrive = false }) => outcome !== "superseded" || mayArrive);
  const byStore = new Map(touched.map((write) => [write.store, write]));
  const undo = (store: Store, signal: AbortSignal): Promise<void> =>
    undoRegion(record, bytes, byStore.get(store)!, { ...context, signal });
  const outcomes = await askRegions([...byStore.keys()], undo, { enough: touched.length }, context);
  // A request without an answer may still arrive.
  return outcomes
    .filter(({ store, error }) => error !== undefined || byStore.get(store)!.mayArrive)
    .map(({ store }) => store);
}

interface Writing {
  readonly record: ManifestRecord;
  readonly bytes: Uint8Array;
  readonly forgeries: ReadonlySet<string>;
  readonly generationMax: number;
}

async function writeRegion(
  { record, bytes, forgeries, generationMax }: Writing,
  seen: RegionManifest,
  context: WriteContext,
  onReplace: (region: RegionManifest) => Promise<void> | undefined,
): Promise<RegionWrite> {
  const { store } = seen;
  const { signal, trust } = context;
  let current = seen;
  let replaced = seen;
  let mayArrive = false;
  for (let attempt = 1; ; attempt++) {
    try {
      if (attempt > 1 || seen.state === "unreachable") current = await readRegion(record.key, store, signal, trust);
    } catch (error) {
      return { store, outcome: "failed", replaced: current, problem: toAgaroseError(error), mayArrive };
    }
    if (holds(current, bytes)) return { store, outcome: "written", replaced };
    if (current.record && compareAge(current.record, record) >= 0) return { store, outcome: "superseded" };
    // If that is undone, a request of ours that is late may still find what it was conditioned on.
    if ((current.record?.generation ?? 0) > generationMax) return { store, outcome: "superseded", replaced, mayArrive };
    if (isLaterForeign(current, record.generation) && !forgeries.has(current.etag ?? "")) {
      return { store, outcome: "failed", replaced, problem: current.problem!, mayArrive };
    }
    try {
      const copying = onReplace(current);
      if (copying) await copying;
    } catch (error) {
      return { store, outcome: "failed", replaced, problem: toAgaroseError(error), mayArrive };
    }
    replaced = current;
    const wasOpen: boolean = mayArrive;
    // The store may have sent the request more than once.
    mayArrive = true;
    try {
      await putConditionally(store, record.key, bytes, current, signal);
      return { store, outcome: "written", replaced: current };
    } catch (error) {
      const problem = toAgaroseError(error, "STORE_FAILED");
      mayArrive = wasOpen || isOpen(problem);
      if (!isConditionFailed(error) || attempt === ATTEMPTS_MAX) {
        return { store, outcome: "failed", replaced: current, problem, mayArrive };
      }
      if (attempt > 1) await pause(attempt, context);
    }
  }
}

/**
 * Whether a failed write may have been executed, or may still be: there was no answer, or one of the server's trouble,
 * which a proxy can give for it. Before a refusal, too, an earlier try of the same request may have had no answer.
 */
function isOpen({ details }: AgaroseError): boolean {
  const { status, attempts = 1 } = details as { status?: number; attempts?: number };
  return status === undefined || status >= 500 || attempts > 1;
}

async function undoRegion(
  record: ManifestRecord,
  bytes: Uint8Array,
  { store, replaced }: RegionWrite,
  { signal, trust }: WriteContext,
): Promise<void> {
  const current = await readRegion(record.key, store, signal, trust);
  if (!holds(current, bytes)) return;
  try {
    if (replaced?.bytes) await putConditionally(store, record.key, replaced.bytes, current, signal);
    else await store.removeMatching(manifestName(record.key), current.etag ?? "*", signal);
  } catch (error) {
    // Another writer's record is there now.
    if (!isConditionFailed(error)) throw error;
  }
}

async function putConditionally(
  store: Store,
  key: string,
  bytes: Uint8Array,
  { etag, bytes: there }: RegionManifest,
  signal: AbortSignal,
): Promise<void> {
  await putRecord(store, manifestName(key), bytes, {
    cacheControl: "no-cache",
    signal,
    ...(etag !== undefined && { ifMatch: etag }),
    ...(etag === undefined && there === undefined && { ifNoneMatch: "*" as const }),
  });
}
