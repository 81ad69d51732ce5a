/** The limit on requests beyond the used chunks. */
import type { RequestRecord } from "@agarose/core/read";
import * as fc from "fast-check";
import { expect, test } from "vitest";
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
        const budget = new HedgeBudget();
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
  const budget = new HedgeBudget();
  expect([budget.hedge(HEDGE_BYTES_MAX, 1), budget.hedge(1, 1), budget.hedge(1, 2)]).toEqual([true, false, true]);
});

test("what costs much is helped on credit, and the next one waits", () => {
  const budget = new HedgeBudget();
  const bytes = 0.8 * HEDGE_BYTES_MAX;
  expect([1, 2, 3].map(() => budget.hedge(bytes, 1))).toEqual([true, false, false]);
  expect(budget.hedge(bytes, 2), "what is late twice is helped").toBe(true);
});

test("extra requests end where they never help, and begin again when chunks are late", () => {
  const budget = new HedgeBudget();
  const read = (used: number[]): void => budget.observe(K, stripe(0, used));
  for (let i = 0; i < 100; i++) read([0, 1, 2, 3]);
  expect(budget.delta(1)).toBe(1);
  for (let i = 0; i < 200; i++) read([0, 1, 2, 3]);
  expect(budget.delta(1)).toBe(0);
  for (let i = 0; i < 2; i++) read([0, 1, 2, 4]);
  expect(budget.delta(1)).toBe(1);
});

test("where one stripe in twenty needs the extra request, it is made", () => {
  const budget = new HedgeBudget();
  for (let i = 0; i < 2000; i++) budget.observe(K, stripe(0, i % 20 === 0 ? [0, 1, 3, 4] : [0, 1, 2, 3]));
  expect(budget.delta(2)).toBe(2);
});
