/**
 * As much of a change of the cache as there is money for: what is worth most per write first, each with the room that it needs.
 * The rest waits, and what waits stays as it is: an object that is not evicted yet still serves. Pure.
 */
import type { CacheChange, Fill } from "./cache-change.ts";
import type { LedgerEntry } from "../state/pop-state.ts";

export interface ChangeBudget {
  /** Writes and deletes that may be made. */
  readonly writes: number;
  /** Of the chunk cache. */
  readonly capacityBytes: number;
}

export interface AffordableChange extends CacheChange {
  /** Stripes of changes that wait for money. */
  readonly waiting: number;
}

/** The last fill may be more than there is money for: it is begun, and the next period goes on. */
export function affordableChange(
  change: CacheChange,
  ledger: readonly LedgerEntry[],
  budget: ChangeBudget,
): AffordableChange {
  const steps = stepsOf(change, ledger);
  const makers = steps.filter(({ bytes, fill }) => bytes < 0 || !fill);
  const growers = steps.filter(({ bytes, fill }) => bytes >= 0 && fill);
  let { writes } = budget;
  let room = budget.capacityBytes - ledger.reduce((sum, entry) => sum + bytesOf(entry), 0);
  const chosen: Step[] = [];
  const choose = (step: Step): void => {
    chosen.push(step);
    writes -= step.writes;
    room -= step.bytes;
  };
  for (const grower of growers) {
    const needed = makersOf(makers, grower.bytes - room);
    const roomWrites = needed.reduce((sum, maker) => sum + maker.writes, 0);
    if (writes <= roomWrites) break;
    for (const maker of makers.splice(0, needed.length)) choose(maker);
    choose(grower);
  }
  for (const maker of makers) {
    if (writes <= 0) break;
    choose(maker);
  }
  const versions = new Set(chosen.map(({ version }) => version));
  const waiting = steps.filter(({ version }) => !versions.has(version));
  return {
    evict: change.evict.filter(({ version }) => versions.has(version)),
    fill: chosen.flatMap(({ fill }) => fill ?? []),
    announce: change.announce.filter(({ version }) => versions.has(version)),
    waiting: waiting.reduce((sum, step) => sum + step.writes, 0),
  };
}

/** One entry's part of a change. */
interface Step {
  readonly version: string;
  readonly writes: number;
  /** How much more room the entry takes afterwards. */
  readonly bytes: number;
  /** Undefined: it is evicted. */
  readonly fill: Fill | undefined;
}

function stepsOf({ evict, fill }: CacheChange, ledger: readonly LedgerEntry[]): Step[] {
  const before = new Map(ledger.map((entry) => [entry.version, bytesOf(entry)]));
  return [
    ...evict.map(({ version, stripes }) => ({
      version,
      writes: stripes,
      bytes: -(before.get(version) ?? 0),
      fill: undefined,
    })),
    ...fill.map((job) => {
      const { version, stripes, done, target, chunkBytes } = job.entry;
      const bytes = target.length * chunkBytes - (before.get(version) ?? 0);
      return { version, writes: stripes - done, bytes, fill: job };
    }),
  ];
}

/** The first ones that together make so much room; all of them where that is not enough. */
function makersOf(makers: readonly Step[], bytes: number): Step[] {
  const needed: Step[] = [];
  let made = 0;
  for (const maker of makers) {
    if (made >= bytes) break;
    needed.push(maker);
    made -= maker.bytes;
  }
  return needed;
}

function bytesOf({ chunks, target, chunkBytes }: LedgerEntry): number {
  return Math.max(chunks.length, target.length) * chunkBytes;
}
