import { expect, test } from "vitest";
import { addTimes, mergeCacheTimes, NO_TIMES, type CacheLatency } from "./cache-latency.ts";

/** After so many periods of one first read each that took `ms`. */
function afterPeriods(periods: number, ms: number, before: CacheLatency = {}): number {
  let latency = before;
  for (let i = 0; i < periods; i++) latency = mergeCacheTimes(latency, { ...NO_TIMES, first: { reads: 1, ms } });
  return latency.first!.meanMs;
}

test("one slow read moves the estimate by a fifth, and slow reads for twenty minutes make it far", () => {
  expect(afterPeriods(1, 10_000)).toBeCloseTo(6, 9);
  expect(afterPeriods(20, 150)).toBeGreaterThan(120);
  expect(afterPeriods(20, 150)).toBeLessThanOrEqual(150);
});

test("a cache that is fast again is near after a few minutes", () => {
  expect(afterPeriods(10, 5, { first: { meanMs: 150, sdMs: 0 } })).toBeLessThan(21);
});

test("the mean of all reads of a period counts, and a period without reads changes nothing", () => {
  const times = addTimes({ ...NO_TIMES, again: { reads: 3, ms: 9 } }, { ...NO_TIMES, again: { reads: 1, ms: 3 } });
  expect(mergeCacheTimes({}, times)).toMatchObject({ first: undefined, again: { meanMs: 4.6 } });
  const before = { first: { meanMs: 7, sdMs: 1 } };
  expect(mergeCacheTimes(before, NO_TIMES).first).toEqual(before.first);
});
