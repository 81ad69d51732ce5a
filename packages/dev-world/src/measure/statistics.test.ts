import { expect, test } from "vitest";
import { seededRandom } from "@agarose/solver/random";
import { medianRatio } from "./statistics.ts";

test("the interval of a ratio of medians is that of two constants, and of 9 values has the true ratio in over 90% of trials", () => {
  const { next } = seededRandom(1);
  expect(medianRatio([6, 6, 6], [3, 3, 3], next)).toEqual([2, 2]);
  let inside = 0;
  for (let trial = 0; trial < 200; trial++) {
    const [a, b] = [2, 1].map((scale) => Array.from({ length: 9 }, () => scale * (1 + next())));
    const [low, high] = medianRatio(a!, b!, next);
    inside += Number(low <= 2 && 2 <= high);
  }
  expect(inside / 200).toBeGreaterThan(0.9);
  expect(inside / 200, "and not always").toBeLessThan(1);
});
