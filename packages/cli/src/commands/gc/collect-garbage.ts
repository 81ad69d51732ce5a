/** Finds orphans, and removes them on request. */
import type { Store } from "../../lib/store/store.ts";
import { findAllOrphans, stillOrphans, type Orphan, type OrphanSearch } from "./find-orphans.ts";

/** What was found and removed. */
export interface GarbageReport {
  readonly orphans: readonly (Orphan & { readonly removed: boolean })[];
  /** Of all orphans together. */
  readonly bytes: number;
  /** Orphans that are too young to count: a put under way has chunks and no manifest yet. */
  readonly younger: { readonly count: number; readonly bytes: number };
  /** What was to be removed and could not be. */
  readonly leftovers: readonly { readonly region: string; readonly name: string; readonly problem: string }[];
}

/** Finds the orphans of `search`; removes them when `removes`. Rejects as `findAllOrphans` does. */
export async function collectGarbage(search: OrphanSearch, removes: boolean): Promise<GarbageReport> {
  const found = await findAllOrphans(search);
  const orphans = found.filter(({ modifiedMs }) => modifiedMs < search.beforeMs);
  const younger = found.filter(({ modifiedMs }) => modifiedMs >= search.beforeMs);
  const removing = removes ? await stillOrphans(orphans, search) : [];
  const leftovers = await remove(removing, search.stores);
  const gone = new Set(removing.map(placeOf));
  for (const leftover of leftovers) gone.delete(placeOf(leftover));
  return {
    orphans: orphans.map((orphan) => ({ ...orphan, removed: gone.has(placeOf(orphan)) })),
    bytes: sumOfBytes(orphans),
    younger: { count: younger.length, bytes: sumOfBytes(younger) },
    leftovers,
  };
}

function sumOfBytes(orphans: readonly Orphan[]): number {
  return orphans.reduce((sum, { bytes }) => sum + bytes, 0);
}

function placeOf({ region, name }: { readonly region: string; readonly name: string }): string {
  return `${region}/${name}`;
}

async function remove(orphans: readonly Orphan[], stores: readonly Store[]): Promise<GarbageReport["leftovers"]> {
  const byRegion = Map.groupBy(orphans, ({ region }) => region);
  const failures = stores.map(async (store) => {
    const region = store.region.name;
    const names = (byRegion.get(region) ?? []).map(({ name }) => name);
    return (names.length > 0 ? await store.remove(names) : []).map((failure) => ({ region, ...failure }));
  });
  return (await Promise.all(failures)).flat();
}
