/** The spending of cache manager and purges on KV operations. Pure. */

/** The spending of one calendar month, UTC. */
export interface Spending {
  /** As in "2026-11". */
  readonly month: string;
  /** KV writes and deletes. */
  readonly writes: number;
  readonly reads: number;
  readonly usd: number;
}

/** Returns the month of a time in milliseconds since 1970. */
export function monthOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 7);
}

/** Returns the spending of the current month. */
export function currentSpending(spent: Spending | undefined, nowMs: number): Spending {
  const month = monthOf(nowMs);
  return spent?.month === month ? spent : { month, writes: 0, reads: 0, usd: 0 };
}

/** Returns the sum of `before` and `more`, which may be negative. Only the later of two months counts. */
export function addSpending(before: Spending | undefined, more: Spending): Spending {
  if (before && before.month > more.month) return before;
  if (before?.month !== more.month) return more.usd < 0 ? { month: more.month, writes: 0, reads: 0, usd: 0 } : more;
  return {
    month: more.month,
    writes: before.writes + more.writes,
    reads: before.reads + more.reads,
    usd: before.usd + more.usd,
  };
}

/** Bytes that fills have fetched from the regions in one day, UTC. */
export interface FillEgress {
  /** As in "2026-11-27". */
  readonly day: string;
  readonly bytes: number;
}

/** Returns the egress of the day of `nowMs`. */
export function currentEgress(spent: FillEgress | undefined, nowMs: number): FillEgress {
  const day = new Date(nowMs).toISOString().slice(0, 10);
  return spent?.day === day ? spent : { day, bytes: 0 };
}

/** Returns the sum of `before` and `more`, whose bytes may be negative. Only the later of two days counts. */
export function addEgress(before: FillEgress | undefined, more: FillEgress): FillEgress {
  if (before && before.day > more.day) return before;
  const bytes = (before?.day === more.day ? before.bytes : 0) + more.bytes;
  return { day: more.day, bytes: Math.max(0, bytes) };
}
