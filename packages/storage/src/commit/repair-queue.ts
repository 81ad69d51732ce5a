/** The repair queue: an entry for every object that a put left incomplete, for `agarose repair`. */
import type { Store } from "../buckets/store.ts";
import { askRegions, isConditionFailed } from "../regions/ask-regions.ts";
import { repairName } from "./names.ts";
import { majorityOf, type RegionParts } from "./write-context.ts";
import { putRecord, recordIn } from "../buckets/small-record.ts";
import { jsonIn } from "../config/json.ts";

interface RepairEntry {
  readonly key: string;
  readonly generation: number;
  /** Chunks that no region took. */
  readonly missing: readonly number[];
  /** Regions without its newest manifest, or without its leaf list where that has pages. */
  readonly regions: readonly string[];
}

/** Enters an object that lacks something in every region that answers. It is a hint, so a failure is not reported. */
export async function enqueueRepair(entry: RepairEntry, context: RegionParts): Promise<void> {
  if (entry.missing.length + entry.regions.length === 0) return;
  const name = repairName(entry.key);
  const put = (store: Store, signal: AbortSignal): Promise<unknown> =>
    putRecord(store, name, JSON.stringify(entry), { signal });
  await askRegions(context.stores, put, { enough: majorityOf(context.stores) }, context);
  context.onQueued?.(entry.key);
}

/**
 * Removes the entry of a key, once generation `generation` of it is whole. The entry of a newer one stays: its put
 * ended while a repair looked at the one before.
 */
export async function dequeueRepair(key: string, generation: number, context: RegionParts): Promise<void> {
  const name = repairName(key);
  const remove = async (store: Store, signal: AbortSignal): Promise<void> => {
    const found = await recordIn(store, name, "entry", signal);
    if (!found || generationOf(found.bytes.toString()) > generation) return;
    await store.removeMatching(name, found.etag ?? "*").catch((error: unknown) => {
      if (!isConditionFailed(error)) throw error;
    });
  };
  await askRegions(context.stores, remove, { enough: majorityOf(context.stores) }, context);
}

/** The generation that an entry names; 0 for what is none. */
function generationOf(text: string): number {
  return Number(Object(jsonIn(text)).generation) || 0;
}
