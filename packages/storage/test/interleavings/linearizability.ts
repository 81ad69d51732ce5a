/**
 * Whether a history of one key is linearizable: the search of Wing and Gong with the memory of Lowe, as in Porcupine
 * and Knossos. Every operation must seem to happen at one moment between its start and its end.
 */

/** The operation of one client on a key, and its answer. */
export interface HistoryEntry {
  /** Moments that only order entries. An entry without an end may still happen, at any time after its start. */
  readonly start: number;
  end: number;
  readonly kind: "put" | "remove" | "read";
  /** The value of a put or a read; undefined for none. */
  value?: string | undefined;
  /** Of a conditional put: what it may replace, with undefined for nothing. */
  readonly expected?: { readonly value: string | undefined } | undefined;
  /**
   * - `done`: it happened.
   * - `refused`: its condition did not hold.
   * - `open`: it has happened, will happen or never does.
   */
  outcome: "done" | "refused" | "open";
}

interface State {
  readonly done: bigint;
  readonly value: string | undefined;
}

/** Whether some order of the entries explains all of them, from a key without an object on. */
export function isLinearizable(entries: readonly HistoryEntry[]): boolean {
  const history = entries.toSorted((a, b) => a.start - b.start);
  // An operation without effect explains nothing, and an open read has not answered yet.
  const wanted = history.reduce((bits, { outcome }, index) => (outcome === "open" ? bits : bits | bit(index)), 0n);
  const seen = new Set<string>();
  const stack: State[] = [{ done: 0n, value: undefined }];
  for (let state = stack.pop(); state; state = stack.pop()) {
    if ((state.done & wanted) === wanted) return true;
    const id = `${state.done} ${state.value}`;
    if (seen.has(id)) continue;
    seen.add(id);
    const left = [...history.entries()].filter(([index]) => (state.done & bit(index)) === 0n);
    const firstEnd = Math.min(
      ...left.map(([, { outcome, end }]) => (outcome === "open" ? Number.POSITIVE_INFINITY : end)),
    );
    for (const [index, entry] of left) {
      if (entry.start > firstEnd) break;
      const next = apply(entry, state.value);
      if (next) stack.push({ done: state.done | bit(index), value: next.value });
    }
  }
  return false;
}

/** The value after an entry; undefined where it cannot happen now. */
function apply({ kind, value, expected, outcome }: HistoryEntry, now: string | undefined) {
  if (kind === "read") return now === value ? { value: now } : undefined;
  const holds = expected === undefined || expected.value === now;
  if (outcome === "refused") return holds ? undefined : { value: now };
  return holds ? { value: kind === "put" ? value : undefined } : undefined;
}

function bit(index: number): bigint {
  return 1n << BigInt(index);
}
