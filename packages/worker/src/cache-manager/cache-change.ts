/**
 * From the cache as the ledger knows it to the cache as planned: what to evict, what to fill, and what may be promised
 * meanwhile. Pure.
 */
import type { CachedObject } from "../state/configuration.ts";
import type { PlannedObject } from "./planner/planner.ts";
import type { LedgerEntry } from "../state/pop-state.ts";

export interface Fill {
  readonly entry: LedgerEntry;
  readonly plan: PlannedObject;
}

export interface CacheChange {
  /** Entries to remove, every stripe of them. */
  readonly evict: readonly LedgerEntry[];
  /** Entries to fill, in this order: most worth per write first. */
  readonly fill: readonly Fill[];
  /** Entries to record before anything is written. */
  readonly announce: readonly LedgerEntry[];
}

export function diffCache(ledger: readonly LedgerEntry[], planned: readonly PlannedObject[]): CacheChange {
  const byVersion = new Map(ledger.map((entry) => [entry.version, entry]));
  const wanted = new Set(planned.map(({ object }) => object.version));
  const evict = ledger
    .filter(({ version }) => !wanted.has(version))
    .map((entry): LedgerEntry => ({ ...entry, chunks: [], target: [], done: 0 }));
  const announce: LedgerEntry[] = [...evict];
  const fill: Fill[] = [];
  for (const plan of planned) {
    const before = byVersion.get(plan.object.version);
    const entry = retarget(before, plan);
    if (entry !== before) announce.push(entry);
    if (entry.done < entry.stripes) fill.push({ entry, plan });
  }
  const worthPerWrite = ({ entry, plan }: Fill): number => plan.worth / (entry.stripes - entry.done);
  return { evict, fill: fill.toSorted((a, b) => worthPerWrite(b) - worthPerWrite(a)), announce };
}

/** Of a change only what was decided before: to go on with fills and evictions, and begin none. */
export function leftovers({ evict, fill }: CacheChange, ledger: ReadonlyMap<string, LedgerEntry>): CacheChange {
  return {
    evict: evict.filter(({ version }) => ledger.get(version)?.target.length === 0),
    fill: fill.filter(({ entry }) => ledger.get(entry.version) === entry),
    announce: [],
  };
}

/** The entry of an object that is to have `plan.chunks`; `before` itself when that is its target already. */
function retarget(before: LedgerEntry | undefined, { object, chunks }: PlannedObject): LedgerEntry {
  if (before && sameChunks(before.target, chunks)) return before;
  const { version, key, stripes, chunkBytes } = object;
  return {
    version,
    key,
    stripes,
    chunkBytes,
    // What old and new have in common stays true of every stripe while they change one by one.
    chunks: before?.chunks.filter((chunk) => chunks.includes(chunk)) ?? [],
    target: chunks,
    done: 0,
  };
}

/** `entry` after its stripes 0 to `done` - 1 got the target. */
export function advance(entry: LedgerEntry, done: number): LedgerEntry {
  return { ...entry, done, chunks: done >= entry.stripes ? entry.target : entry.chunks };
}

/** What may be promised of the cache in the ledger's state. */
export function promise(ledger: readonly LedgerEntry[]): Record<string, CachedObject> {
  const promised = ledger
    .filter(({ chunks }) => chunks.length > 0)
    .map((entry) => {
      const { version, key, chunks, stripes } = entry;
      return [version, { key, chunks, stripes, bytes: chunks.length * entry.chunkBytes }] as const;
    });
  return Object.fromEntries(promised);
}

function sameChunks(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((chunk, i) => chunk === b[i]);
}
