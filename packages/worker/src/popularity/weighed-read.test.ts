import { expect, test } from "vitest";
import { weighedRead } from "./weighed-read.ts";

/** How often a read counts of which a client takes these bytes, one after the other, of an object of 1,000. */
const counted = (taken: readonly number[], random: number): number => {
  let times = 0;
  const note = weighedRead(1_000, () => times++, random);
  for (const bytes of taken) note(bytes);
  return times;
};

test("a read counts with the probability of the share of the object that its client takes", () => {
  expect([[1_000], [350], [300], [1]].map((taken) => counted(taken, 0.3))).toEqual([1, 1, 0, 0]);
  expect(counted([100, 100, 0, 101], 0.3), "what it takes bit by bit adds up").toBe(1);
});

test("a read counts once, whatever its client takes, and never without a byte", () => {
  expect(counted([1_000, 1_000, 1_000], 0.999)).toBe(1);
  expect(counted([0, 0], 0)).toBe(0);
});
