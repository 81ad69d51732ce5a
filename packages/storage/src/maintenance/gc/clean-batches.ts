/** Removes the batches of writers that died. */
import { batchesIn } from "../../commit/batches.ts";
import { DEAD_MS } from "../../commit/lease.ts";
import { majorityOf } from "../../commit/write-context.ts";
import { askRegions } from "../../regions/ask-regions.ts";
import { surveyAll } from "../../regions/region-survey.ts";
import type { ViewContext } from "./key-view.ts";
import type { GarbageReport, Mutable } from "./search.ts";

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
