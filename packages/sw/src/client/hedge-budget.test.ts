/** What may be asked for beyond what is used. */
import type { RequestRecord } from "@agarose/core/read";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HEDGE_BYTES_MAX, HEDGED_SHARE, HedgeBudget } from "./hedge-budget.ts";

const K = 4;

/** The requests of one stripe of k + extra, of which those in `used` were used. */
function stripe(index: number, used: readonly number[], bytes = 1000): RequestRecord[] {
  return Array.from({ length: Math.max(...used, K) + 1 }, (_, i) => ({
    stripe: index,
    outcome: used.includes(i) ? "used" : "cancelled",
    bytes,
  })) as unknown as RequestRecord[];
}

test("bytes asked for because the first were late stay within their share of those used, but for what is stuck", () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ bytes: fc.integer({ min: 1, max: 500_000 }), late: fc.boolean() }), { maxLength: 200 }),
      (stripes) => {
        const budget = new HedgeBudget({ now: () => 0 });
        let [used, hedged] = [0, 0];
        stripes.forEach(({ bytes, late }, i) => {
          if (late && budget.hedge(bytes, 1)) hedged += bytes;
          used += K * bytes;
          budget.observe(K, stripe(i, [0, 1, 2, 3], bytes));
        });
        expect(hedged).toBeLessThanOrEqual(HEDGE_BYTES_MAX + HEDGED_SHARE * used);
      },
    ),
  );
});

test("a stripe that is late twice is helped whatever was spent", () => {
  const budget = new HedgeBudget({ now: () => 0 });
  expect([budget.hedge(HEDGE_BYTES_MAX, 1), budget.hedge(1, 1), budget.hedge(1, 2)]).toEqual([true, false, true]);
});

describe("a late piece that flows", () => {
  const BYTES = 100_000;
  const started = (source: string, startMs: number, endMs?: number) =>
    ({
      source,
      kind: "region",
      outcome: endMs === undefined ? "pending" : "used",
      startMs,
      endMs,
      bytes: BYTES,
    }) as RequestRecord;

  /** Whether k others are asked in place of a piece that began at 0, at 100 ms, beside other requests. */
  function asksOthers(restMs: number, beside: readonly RequestRecord[] = [], times = 2): boolean {
    const budget = new HedgeBudget({ now: () => 100 });
    const record = started("r0", 0);
    for (const one of [record, ...beside]) budget.note(one);
    return budget.hedge(BYTES, times, { costBytes: K * BYTES, record, restMs, othersMs: 50, lateMs: 40 });
  }

  test("gets help where its region is slow, and not where the rest comes sooner than k others", () => {
    expect([asksOthers(201), asksOthers(199), asksOthers(Number.POSITIVE_INFINITY)]).toEqual([true, false, true]);
  });

  test("gets none while others share the line as long as it has run, or have just done so", () => {
    const beside = [started("r1", 0), started("r2", 10), started("r3", 0, 60)];
    expect([asksOthers(700, beside), asksOthers(801, beside)]).toEqual([false, true]);
  });

  test("gets help beside others that come and go quickly, as on an idle line", () => {
    const beside = Array.from({ length: 20 }, (_, i) => started("r1", 5 * i, 5 * i + 20));
    expect(asksOthers(201, beside)).toBe(true);
  });

  test("gets help where it is far slower than those of other regions beside it", () => {
    // 1 byte/ms each: four others take 250 + 50 ms to send as much, and get the double.
    const beside = Array.from({ length: 4 }, () => ({ ...started("r1", 0), receivedBytes: 40_000 }));
    expect([asksOthers(1_050, beside), asksOthers(1_150, beside)]).toEqual([false, true]);
  });

  test("costs what k others cost, so that the next one waits", () => {
    const budget = new HedgeBudget({ now: () => 100 });
    const record = started("r0", 0);
    const piece = { costBytes: K * 200_000, record, restMs: undefined, othersMs: 50, lateMs: 40 };
    const asked = [1, 2, 3].map(() => budget.hedge(200_000, 1, piece));
    expect(asked, "1 MiB lasts for two, the second one on credit").toEqual([true, true, false]);
    expect(budget.hedge(200_000, 2, piece), "what is silent twice is helped").toBe(true);
  });
});

describe("a late piece that is silent", () => {
  const KIB = 1024;
  const piece = (source: string, fields: Partial<RequestRecord> = {}) =>
    ({ source, kind: "region", outcome: "pending", startMs: 0, bytes: 400 * KIB, ...fields }) as RequestRecord;

  /** Whether others are asked for it at each of these times, when as much has come of those beside it. */
  function asksOthers(beside: RequestRecord[], steps: readonly (readonly [nowMs: number, receivedBytes: number])[]) {
    let nowMs = 0;
    const budget = new HedgeBudget({ now: () => nowMs });
    const record = piece("r0");
    for (const one of [record, ...beside]) budget.note(one);
    return steps.map(([at, receivedBytes], i) => {
      nowMs = at;
      for (const one of beside) if (one.endMs === undefined) Object.assign(one, { receivedBytes, heardMs: at - 1 });
      return budget.hedge(1, i + 1, { costBytes: K, record, restMs: undefined, othersMs: 50, lateMs: 40 });
    });
  }

  test("gets help at once on an idle line", () => {
    expect(asksOthers([], [[40, 0]])).toEqual([true]);
    const ended = piece("r1", { endMs: 30, heardMs: 30, receivedBytes: 400 * KIB });
    expect(asksOthers([ended], [[40, 0]])).toEqual([true]);
  });

  test("waits beside those that flow until each of them has had another turn", () => {
    const steps = [40, 80, 120].map((ms) => [ms, (ms / 40) * 100 * KIB] as const);
    expect(asksOthers([piece("r1"), piece("r2")], steps)).toEqual([false, false, true]);
  });

  test("waits while its region sends what was asked for before, as for a connection", () => {
    const steps = [40, 80, 400].map((ms) => [ms, ms * KIB] as const);
    expect(asksOthers([piece("r0")], steps)).toEqual([false, false, false]);
  });

  test("gets help where its region has served a later request", () => {
    const later = piece("r0", { startMs: 10, endMs: 39, heardMs: 39, receivedBytes: KIB });
    expect(asksOthers([piece("r0"), later], [[40, KIB]])).toEqual([true]);
  });

  test("gets help after five seconds, however slowly others flow", () => {
    const steps = [40, 4_900, 5_100].map((ms) => [ms, ms] as const);
    expect(asksOthers([piece("r1")], steps)).toEqual([false, false, true]);
  });
});

test("extra requests end where they never help, and begin again when chunks are late", () => {
  const budget = new HedgeBudget({ now: () => 0 });
  const read = (used: number[]): void => budget.observe(K, stripe(0, used));
  for (let i = 0; i < 100; i++) read([0, 1, 2, 3]);
  expect(budget.delta(1)).toBe(1);
  for (let i = 0; i < 200; i++) read([0, 1, 2, 3]);
  expect(budget.delta(1)).toBe(0);
  for (let i = 0; i < 2; i++) read([0, 1, 2, 4]);
  expect(budget.delta(1)).toBe(1);
});

test("where one stripe in twenty needs the extra request, it is made", () => {
  const budget = new HedgeBudget({ now: () => 0 });
  for (let i = 0; i < 2000; i++) budget.observe(K, stripe(0, i % 20 === 0 ? [0, 1, 3, 4] : [0, 1, 2, 3]));
  expect(budget.delta(2)).toBe(2);
});
