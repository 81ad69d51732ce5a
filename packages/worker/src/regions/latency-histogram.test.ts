import { expect, test } from "vitest";
import { observeTimes, quantileMs, type LatencyHistogram } from "./latency-histogram.ts";

test("a quantile is within a class, half as much again, of the true one", () => {
  const times = Array.from({ length: 1000 }, (_, i) => i + 1);
  const histogram = observeTimes(undefined, times);
  for (const q of [0.5, 0.9, 0.99]) {
    const ms = quantileMs(histogram, q)!;
    expect(ms).toBeGreaterThanOrEqual(q * 1000);
    expect(ms).toBeLessThanOrEqual(q * 1000 * 1.5);
  }
});

test("what is older weighs less, and ends as nothing", () => {
  let histogram: LatencyHistogram = observeTimes(undefined, [1_000, 1_000]);
  for (let period = 0; period < 20; period++) histogram = observeTimes(histogram, [10]);
  expect(quantileMs(histogram, 0.95)).toBeLessThan(20);
  for (let period = 0; period < 200; period++) histogram = observeTimes(histogram, []);
  expect(quantileMs(histogram, 0.5)).toBeUndefined();
});

test("times off both ends are in the last classes", () => {
  const histogram = observeTimes(undefined, [0, 1e-9, 1e9]);
  expect(quantileMs(histogram, 0.1)).toBe(1);
  expect(quantileMs(histogram, 1)).toBeGreaterThan(50_000);
});
