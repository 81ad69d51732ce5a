import { expect, test } from "vitest";
import { collect, describeReads, figureOf, slowestOf, type Sample } from "./latency.ts";

const FAILED: Sample = { ms: Number.POSITIVE_INFINITY, at: 0, error: "503 SlowDown" };

/** A clock that each read moves by how long it takes. */
function readsOf(times: readonly number[]) {
  let nowMs = 0;
  const order: number[] = [];
  const contestant = (name: number) => async (): Promise<Sample> => {
    order.push(name);
    const ms = times[name]!;
    nowMs += ms;
    return { ms, at: nowMs };
  };
  return { order, contestants: times.map((_, name) => contestant(name)), clock: { now: () => nowMs } };
}

test("contestants read in turn until each has its reads", async () => {
  const { order, contestants, clock } = readsOf([10, 20]);
  const samples = await collect(contestants, { reads: 3, timeoutMs: 1_000, clock });
  expect(order).toEqual([0, 1, 0, 1, 0, 1]);
  expect(samples.map((own) => own.map(({ ms }) => ms))).toEqual([
    [10, 10, 10],
    [20, 20, 20],
  ]);
});

test("the time ends the reads, and the read that it cuts off does not count", async () => {
  const { order, contestants, clock } = readsOf([10, 20]);
  const samples = await collect(contestants, { reads: 30, timeoutMs: 65, clock });
  expect(order).toEqual([0, 1, 0, 1, 0]);
  expect(samples.map(({ length }) => length)).toEqual([2, 2]);
});

test("figures are nearest ranks and the mean; the p99 of 30 reads is their maximum", () => {
  const samples = Array.from({ length: 30 }, (_, i): Sample => ({ ms: 30 - i, at: i }));
  expect([figureOf(samples, "p50"), figureOf(samples, "p99"), figureOf(samples, "mean")]).toEqual([15, 30, 15.5]);
  expect(slowestOf(samples)).toEqual({ ms: 30, at: 0 });
});

test("a failed read is slower than any other, and a description says why it failed", () => {
  const samples: Sample[] = [{ ms: 5, at: 0 }, { ms: 7, at: 1 }, FAILED];
  expect(figureOf(samples, "p99")).toBe(Number.POSITIVE_INFINITY);
  expect(describeReads(samples, "p50")).toBe("p50 of 3 reads: 7.0 ms; 1 failed: 503 SlowDown");
  expect(describeReads(samples, "p99")).toBe(
    "p99 of 3 reads: none, because failed reads are part of it; 1 failed: 503 SlowDown",
  );
  expect(slowestOf(samples)).toEqual({ ms: 7, at: 1 });
  expect(slowestOf([FAILED])).toBeUndefined();
});
