/**
 * From the cache that the ledger records to the cache that was planned: what to evict, what to fill, what plans may
 * promise in the meantime, and how much of it the write budget pays for. Pure.
 */
import type { PlannedContents } from "@agarose/solver/planner";
import type { CachedObject } from "./configuration.ts";
import type { LedgerEntry } from "./ledger.ts";

interface Fill {
  readonly entry: LedgerEntry;
  readonly plan: PlannedContents;
}

/** A change of the cache. */
export interface CacheChange {
  /** Entries to remove, every stripe of them. */
  readonly evict: readonly LedgerEntry[];
  /** Entries to fill, in this order: best value per write first. */
  readonly fill: readonly Fill[];
  /** Entries to record before anything is written. */
  readonly announce: readonly LedgerEntry[];
}

/**
 * Returns the most bytes that a stripe of a fill fetches while all sources are sound: each chunk that it lacks, or any
 * k where one of those is to be computed.
 */
export function fetchedBytesPerStripe({ entry, plan: { object } }: Fill): number {
  const missing = entry.target.filter((chunk) => !entry.chunks.includes(chunk));
  const isComputed = missing.some((chunk) => chunk >= object.k + object.m);
  return (isComputed ? object.k : Math.min(object.k, missing.length)) * (entry.chunkBytes / entry.stripes);
}

/** Returns the same of all stripes that are left to do. */
export function fetchedBytes(fill: Fill): number {
  return fetchedBytesPerStripe(fill) * (fill.entry.stripes - fill.entry.done);
}

/** Returns the change that turns the ledger into the plan. */
export function diffCache(ledger: readonly LedgerEntry[], planned: readonly PlannedContents[]): CacheChange {
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

/** Returns the part of a change that an earlier period has begun: it continues fills and evictions, and begins none. */
export function leftovers({ evict, fill }: CacheChange, ledger: ReadonlyMap<string, LedgerEntry>): CacheChange {
  return {
    evict: evict.filter(({ version }) => ledger.get(version)?.target.length === 0),
    fill: fill.filter(({ entry }) => ledger.get(entry.version) === entry),
    announce: [],
  };
}

/** Returns the entry of an object that shall have `plan.chunks`: `before` itself where that is its target already. */
function retarget(before: LedgerEntry | undefined, { object, chunks }: PlannedContents): LedgerEntry {
  if (before && sameChunks(before.target, chunks)) return before;
  const { version, key, stripes, chunkBytes } = object;
  return {
    version,
    key,
    stripes,
    chunkBytes,
    // While stripes change one by one, each of them has the chunks that old and new target share.
    chunks: before?.chunks.filter((chunk) => chunks.includes(chunk)) ?? [],
    target: chunks,
    done: 0,
  };
}

/** Returns `entry` after stripes 0 to `done` - 1 have got the target. */
export function advance(entry: LedgerEntry, done: number): LedgerEntry {
  return { ...entry, done, chunks: done >= entry.stripes ? entry.target : entry.chunks };
}

/** Returns what plans may promise of the cache that the ledger records. */
export function promise(ledger: readonly LedgerEntry[]): Map<string, CachedObject> {
  const promised = ledger
    .filter(({ chunks }) => chunks.length > 0)
    .map(({ version, key, chunks, stripes }) => [version, { key, chunks, stripes }] as const);
  return new Map(promised);
}

function sameChunks(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((chunk, i) => chunk === b[i]);
}

interface ChangeBudget {
  readonly writes: number;
  /** Bytes that may be fetched from the regions. */
  readonly egressBytes: number;
  readonly capacityBytes: number;
}

/** A change within its limits. */
export interface AffordableChange extends CacheChange {
  /** Stripes that wait for money. */
  readonly waiting: number;
  /** Stripes of fills that the egress budget refuses. */
  readonly refused: number;
}

/**
 * Trims a change to the budgets: best value per write first, plus the evictions that each fill needs. The rest waits
 * and keeps serving. The last fill may exceed the write budget: it begins, and the next period continues it. None may
 * exceed the egress of the day, because half a fill has displaced what served and serves nothing until tomorrow.
 */
export function affordableChange(
  change: CacheChange,
  ledger: readonly LedgerEntry[],
  budget: ChangeBudget,
): AffordableChange {
  const steps = stepsOf(change, ledger);
  const evictions = steps.filter(({ bytes, fill }) => bytes < 0 || !fill);
  const additions = steps.filter(({ bytes, fill }) => bytes >= 0 && fill);
  let { writes, egressBytes } = budget;
  let refused = 0;
  let room = budget.capacityBytes - ledger.reduce((sum, entry) => sum + bytesOf(entry), 0);
  const chosen: Step[] = [];
  const choose = (step: Step): void => {
    chosen.push(step);
    writes -= step.writes;
    room -= step.bytes;
    egressBytes -= step.egressBytes;
  };
  for (const addition of additions) {
    if (addition.egressBytes > egressBytes) {
      refused += addition.writes;
      continue;
    }
    const needed = evictionsFor(evictions, addition.bytes - room);
    const roomWrites = needed.reduce((sum, eviction) => sum + eviction.writes, 0);
    if (writes <= roomWrites) break;
    for (const eviction of evictions.splice(0, needed.length)) choose(eviction);
    choose(addition);
  }
  for (const eviction of evictions) {
    // Its replacement cannot be cached yet.
    if (writes <= 0 || refused > 0) break;
    choose(eviction);
  }
  const versions = new Set(chosen.map(({ version }) => version));
  const waiting = steps.filter(({ version }) => !versions.has(version));
  return {
    evict: change.evict.filter(({ version }) => versions.has(version)),
    fill: chosen.flatMap(({ fill }) => fill ?? []),
    announce: change.announce.filter(({ version }) => versions.has(version)),
    waiting: waiting.reduce((sum, step) => sum + step.writes, 0) - refused,
    refused,
  };
}

/** One entry's part of a change. */
interface Step {
  readonly version: string;
  readonly writes: number;
  /** How many more bytes the entry takes afterwards. */
  readonly bytes: number;
  readonly egressBytes: number;
  /** Undefined for an eviction. */
  readonly fill: Fill | undefined;
}

function stepsOf({ evict, fill }: CacheChange, ledger: readonly LedgerEntry[]): Step[] {
  const before = new Map(ledger.map((entry) => [entry.version, bytesOf(entry)]));
  return [
    ...evict.map(({ version, stripes }) => ({
      version,
      writes: stripes,
      bytes: -(before.get(version) ?? 0),
      egressBytes: 0,
      fill: undefined,
    })),
    ...fill.map((job) => {
      const { version, stripes, done, target, chunkBytes } = job.entry;
      const bytes = target.length * chunkBytes - (before.get(version) ?? 0);
      return { version, writes: stripes - done, bytes, egressBytes: fetchedBytes(job), fill: job };
    }),
  ];
}

/** Returns the first evictions that together free so many bytes, or all of them where those do not suffice. */
function evictionsFor(evictions: readonly Step[], bytes: number): Step[] {
  const needed: Step[] = [];
  let made = 0;
  for (const eviction of evictions) {
    if (made >= bytes) break;
    needed.push(eviction);
    made -= eviction.bytes;
  }
  return needed;
}

function bytesOf({ chunks, target, chunkBytes }: LedgerEntry): number {
  return Math.max(chunks.length, target.length) * chunkBytes;
}
