import * as fc from "fast-check";
import { expect, test } from "vitest";
import { hedgeAfterMs, observeLatency, type LatencyEstimate } from "./latency.ts";

test("the first measurement is the mean, and a quarter of it the spread", () => {
  expect(observeLatency(undefined, 80)).toEqual({ meanMs: 80, sdMs: 20 });
});

test("the spread of a steady source shrinks", () => {
  let estimate: LatencyEstimate = { meanMs: 500, sdMs: 300 };
  for (let i = 0; i < 60; i++) estimate = observeLatency(estimate, 100);
  expect(estimate.meanMs).toBeCloseTo(100, 1);
  expect(estimate.sdMs).toBeLessThan(1);
});

test("mean and spread stay within the measurements", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 10, max: 1000 }), { minLength: 1, maxLength: 50 }), (all) => {
      const estimate = all.reduce<LatencyEstimate | undefined>(observeLatency, undefined)!;
      expect(estimate.meanMs).toBeGreaterThanOrEqual(Math.min(...all) - 1e-6);
      expect(estimate.meanMs).toBeLessThanOrEqual(Math.max(...all) + 1e-6);
      expect(estimate.sdMs).toBeGreaterThanOrEqual(0);
      expect(estimate.sdMs).toBeLessThanOrEqual(1000);
    }),
  );
});

test("a request is late after its mean and three spreads, and never before 20 ms", () => {
  expect(hedgeAfterMs({ meanMs: 100, sdMs: 10 })).toBe(130);
  expect(hedgeAfterMs({ meanMs: 1, sdMs: 1 })).toBe(20);
  expect(hedgeAfterMs({ meanMs: 100, sdMs: 10, lateMs: 110 })).toBe(110);
});
