/**
 * The open walk: its ranges, who walks each of them, and how far. A Durable Object keeps it, one call at a time, so
 * that an instance that comes back from the dead, or a step that runs twice, changes nothing that has gone on without
 * it.
 */
import { DurableObject } from "cloudflare:workers";
import { AgaroseError } from "@agarose/core";
import { isRecord } from "@agarose/core/format";
import { isBehind, rangesOf, type KeyRange } from "@agarose/storage/listing/key-ranges";
import type { WalkTimes } from "@agarose/storage/maintenance/scrub/metrics";
import { addTotals, NO_TOTALS, totalsOf, type Totals } from "@agarose/storage/maintenance/scrub/totals";

/** A walk that has not reached its end. */
export interface OpenWalk {
  readonly id: string;
  /** The scope of the walk: a walk with a different scope begins at the first key. */
  readonly scope: string;
  readonly startMs: number;
  /** Ranges, 0 until the keys are cut. */
  readonly ranges: number;
  /** Requests to buckets since the last start of a parent. */
  readonly requests: number;
}

/** A Workflow that walks over a range. A new one continues the range of one that ended early. */
export interface Child {
  readonly id: string;
  readonly index: number;
}

/** Where a range stands. */
export interface Position {
  /** The last key that is done. Undefined at the start of the first range. */
  readonly after?: string;
  readonly totals: Totals;
  readonly isEnd: boolean;
}

/** A range of the open walk. */
interface Range extends KeyRange {
  readonly position: Position;
  /** Keys in it that somebody knows to be damaged, which PoPs have named among others. */
  readonly urgent: number;
  readonly behind: readonly string[];
  /** Children so far. */
  readonly children: number;
  /** The Workflow that walks now. Undefined: none does. */
  readonly child?: string;
  /** Children since the last part that got done, or the last start of a parent, that failed; and why. */
  readonly failures: number;
  readonly error?: string;
  /** Dollars of full reads that it may spend in all. */
  readonly usd?: number;
}

/** The next task of a child. */
export interface Task extends Pick<Range, "until" | "behind" | "position"> {
  /** When the walk began: it decides what is read in full. */
  readonly startMs: number;
  readonly ranges: number;
  /** Dollars of full reads that are left to the range. */
  readonly usd?: number;
}

/** A child that has ended, and why where that was too early. */
export interface Ended extends Child {
  readonly error?: string;
}

/** The children that a parent may start. */
export interface Limits {
  readonly concurrency: number;
  readonly requests: number;
  /** Dollars of full reads in the walk. */
  readonly usd?: number | undefined;
}

/** The next task of a parent. */
export interface Round {
  readonly start: readonly Child[];
  /** Nothing runs, and nothing more may be started. */
  readonly isOver: boolean;
  /** Set once all ranges are done. */
  readonly ended?: EndedWalk;
}

/** A walk that reached its end. */
export interface EndedWalk extends WalkTimes {
  readonly totals: Totals;
}

/** How the open walk goes. */
export interface Progress extends OpenWalk {
  readonly totals: Totals;
  readonly rangesDone: number;
  readonly rangesRunning: number;
  /** Ranges whose last child failed, and why. */
  readonly failed: readonly (KeyRange & { readonly failures: number; readonly error: string })[];
}

/** Children of a range that may fail in a row until it is left to the next start of a parent. */
const FAILURES_MAX = 3;
const RANGE = "range:";
/** Durable Objects delete so many at a time. */
const DELETED_AT_A_TIME = 128;

/** Keeps the open walk and the last one. */
export class Ledger extends DurableObject {
  /** The Workflow that leads the walk. Undefined when there never was one. */
  async parent(): Promise<string | undefined> {
    return (await this.ctx.storage.get("parent")) as string | undefined;
  }

  /** Makes `id` the parent in place of `instead`, and returns who is it now: another one may have come first. */
  async claim(id: string, instead: string | undefined): Promise<string> {
    const parent = await this.parent();
    if (parent !== instead && parent !== undefined) return parent;
    await this.ctx.storage.put("parent", id);
    return id;
  }

  /** Continues the open walk, or begins one where there is none or it is over something else. */
  async begin(parent: string, scope: string, startMs: number): Promise<OpenWalk | undefined> {
    if (!(await this.#isParent(parent))) return undefined;
    const open = await this.#open();
    const ranges = await this.#ranges();
    if (open?.scope === scope && ranges.length === open.ranges) {
      for (const [index, range] of ranges.entries()) await this.#save(index, { ...range, failures: 0 });
      return this.#note({ ...open, requests: 0 });
    }
    await this.#forget();
    return this.#note({ id: startMs.toString(36), scope, startMs, ranges: 0, requests: 0 });
  }

  /**
   * Cuts the keys of the open walk, once. `urgent` keys are walked over first, and those of PoPs are repaired whatever
   * listings show.
   *
   * @throws INTERNAL when ranges would overlap.
   */
  async cut(parent: string, cuts: readonly string[], urgent: readonly string[], behind: readonly string[]) {
    const open = await this.#open();
    if (!open || open.ranges > 0 || !(await this.#isParent(parent))) return;
    // Of a call before that did not come to its end.
    await this.#forget();
    const trouble = ((await this.ctx.storage.get("trouble")) ?? []) as readonly string[];
    const ranges = rangesOf(cuts);
    for (const [index, range] of ranges.entries()) {
      const own = behind.filter((key) => isIn(range, key));
      await this.#save(index, {
        ...range,
        position: { ...(range.after !== undefined && { after: range.after }), totals: NO_TOTALS, isEnd: false },
        urgent: own.length + [...urgent, ...trouble].filter((key) => isIn(range, key)).length,
        behind: own,
        children: 0,
        failures: 0,
      });
    }
    await this.#note({ ...open, ranges: ranges.length });
  }

  /** The children of the parent that have not reported their end. */
  async running(parent: string): Promise<Child[]> {
    if (!(await this.#isParent(parent))) return [];
    const ranges = await this.#ranges();
    return ranges.flatMap(({ child }, index) => (child === undefined ? [] : { id: child, index }));
  }

  /** Takes note of children that have ended without a report, and chooses ranges for new ones. */
  async round(parent: string, lost: readonly Ended[], { concurrency, requests, usd }: Limits, nowMs: number) {
    const over: Round = { start: [], isOver: true };
    const open = await this.#open();
    if (!open || !(await this.#isParent(parent))) return over;
    for (const child of lost) await this.release(child);
    const ranges = await this.#ranges();
    const rest = [...ranges.entries()].filter(([, { position }]) => !position.isEnd);
    if (rest.length === 0) return { ...over, ended: await this.#end(open, ranges, nowMs) };
    const running = rest.filter(([, { child }]) => child !== undefined).length;
    const waiting = open.requests >= requests ? [] : rest.filter(([, range]) => mayStart(range));
    const chosen = waiting
      .toSorted(([, a], [, b]) => a.failures - b.failures || b.urgent - a.urgent)
      .slice(0, Math.max(0, concurrency - running));
    const start: Child[] = [];
    for (const [index, range] of chosen) {
      const id = `${open.id}-${index}-${range.children + 1}`;
      const share = usd === undefined ? range.usd : (range.usd ?? shareOf(usd, await this.#ranges()));
      await this.#save(index, {
        ...range,
        child: id,
        children: range.children + 1,
        ...(share !== undefined && { usd: share }),
      });
      start.push({ id, index });
    }
    return { start, isOver: running + start.length === 0 };
  }

  /** The task of a child. Undefined when its range is done, or another child has it. */
  async take({ id, index }: Child): Promise<Task | undefined> {
    const range = await this.#range(index);
    const open = await this.#open();
    if (!open || range?.child !== id || range.position.isEnd) return undefined;
    const { until, behind, position, usd } = range;
    return {
      startMs: open.startMs,
      ranges: open.ranges,
      ...(until !== undefined && { until }),
      behind,
      position,
      ...(usd !== undefined && { usd: Math.max(0, usd - position.totals.readUsd) }),
    };
  }

  /**
   * Takes note of a part: a child has walked on from `from`. Returns whether it continues. A part that was done before,
   * or whose range another child has, counts for nothing.
   *
   * @throws INTERNAL when the part ends outside of the range.
   */
  async pass({ id, index }: Child, from: Position, to: Position, { spent, max }: { spent: number; max: number }) {
    const range = await this.#range(index);
    const open = await this.#open();
    if (!open || range?.child !== id || range.position.after !== from.after || range.position.isEnd) return false;
    if (to.after !== undefined && to.after !== from.after && !isIn({ ...range, ...afterOf(from) }, to.after)) {
      const details = { after: from.after, until: range.until, cursor: to.after };
      const message = `a part behind ${from.after ?? "the first key"} ends at ${to.after}, outside of its range, which ends at ${range.until ?? "the last key"}`;
      throw new AgaroseError("INTERNAL", message, details);
    }
    const { requests } = await this.#note({ ...open, requests: open.requests + spent });
    const isOver = to.isEnd || requests >= max;
    const { child, error: _, ...rest } = range;
    await this.#save(index, { ...rest, position: to, failures: 0, ...(!isOver && { child }) });
    return !isOver;
  }

  /** Frees the range of a child that ends, with an error where it failed. */
  async release({ id, index, error }: Ended): Promise<void> {
    const range = await this.#range(index);
    if (range?.child !== id) return;
    const { child: _, ...rest } = range;
    await this.#save(index, error === undefined ? rest : { ...rest, failures: range.failures + 1, error });
  }

  /** The open walk. Undefined while there is none. */
  async progress(): Promise<Progress | undefined> {
    const open = await this.#open();
    if (!open) return undefined;
    const ranges = await this.#ranges();
    return {
      ...open,
      totals: sumOf(ranges),
      rangesDone: ranges.filter(({ position }) => position.isEnd).length,
      rangesRunning: ranges.filter(({ child }) => child !== undefined).length,
      failed: ranges.flatMap(({ after, until, failures, error }) =>
        failures > 0 ? { ...afterOf({ after }), ...(until !== undefined && { until }), failures, error: error! } : [],
      ),
    };
  }

  /** The last walk that reached its end. Undefined when there was none, or none that this version can read. */
  async last(): Promise<EndedWalk | undefined> {
    const kept = await this.ctx.storage.get("last");
    if (!isRecord(kept)) return undefined;
    const { startMs, endMs } = kept;
    const totals = totalsOf(kept["totals"]);
    return totals && typeof startMs === "number" && typeof endMs === "number" ? { totals, startMs, endMs } : undefined;
  }

  async #end({ startMs }: OpenWalk, ranges: readonly Range[], endMs: number): Promise<EndedWalk> {
    const ended = { totals: sumOf(ranges), startMs, endMs };
    const isTroubled = ({ position: { totals } }: Range): boolean =>
      totals.damaged + totals.failed + totals.unchecked > 0;
    const trouble = ranges.filter(isTroubled).flatMap(({ until, after }) => until ?? after ?? []);
    await this.ctx.storage.put("last", ended);
    await this.ctx.storage.put("trouble", trouble);
    await this.#forget();
    return ended;
  }

  /** The open walk goes last, so that a call that did not come to its end does the rest the next time. */
  async #forget(): Promise<void> {
    const names = [...(await this.ctx.storage.list({ prefix: RANGE })).keys(), "open"];
    while (names.length > 0) await this.ctx.storage.delete(names.splice(0, DELETED_AT_A_TIME));
  }

  async #isParent(id: string): Promise<boolean> {
    return (await this.parent()) === id;
  }

  async #open(): Promise<OpenWalk | undefined> {
    return (await this.ctx.storage.get("open")) as OpenWalk | undefined;
  }

  async #note(walk: OpenWalk): Promise<OpenWalk> {
    await this.ctx.storage.put("open", walk);
    return walk;
  }

  async #range(index: number): Promise<Range | undefined> {
    return (await this.ctx.storage.get(nameOf(index))) as Range | undefined;
  }

  async #ranges(): Promise<Range[]> {
    return [...(await this.ctx.storage.list({ prefix: RANGE })).values()] as Range[];
  }

  async #save(index: number, range: Range): Promise<void> {
    await this.ctx.storage.put(nameOf(index), range);
  }
}

/** Storage lists names in order. */
function nameOf(index: number): string {
  return `${RANGE}${String(index).padStart(6, "0")}`;
}

function mayStart({ child, failures }: Range): boolean {
  return child === undefined && failures < FAILURES_MAX;
}

function isIn({ after, until }: KeyRange, key: string): boolean {
  return (after === undefined || isBehind(key, after)) && (until === undefined || !isBehind(key, until));
}

function afterOf({ after }: { readonly after?: string | undefined }): KeyRange {
  return after === undefined ? {} : { after };
}

function sumOf(ranges: readonly Range[]): Totals {
  return ranges.reduce((sum, { position }) => addTotals(sum, position.totals), NO_TOTALS);
}

/** An even share of the dollars that are neither spent nor promised to other ranges. */
function shareOf(usd: number, ranges: readonly Range[]): number {
  const isOpen = ({ position, usd: share }: Range): boolean => !position.isEnd && share === undefined;
  const promised = ranges.map(({ position, usd: share }) => (position.isEnd ? position.totals.readUsd : (share ?? 0)));
  return Math.max(0, usd - promised.reduce((sum, share) => sum + share, 0)) / ranges.filter(isOpen).length;
}
