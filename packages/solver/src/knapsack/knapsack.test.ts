import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { SolverError } from "../errors.ts";
import { solveKnapsack, type KnapsackInstance, type KnapsackSolution } from "./index.ts";
import { solveKnapsackNaive } from "../../test/knapsack-oracle.ts";
import { seededRandom } from "../random.ts";
import { drawInstance, FAMILIES } from "../../test/knapsack-families.ts";

function instanceOf(capacity: number, objects: [number, number][][]): KnapsackInstance {
  const start = [0];
  for (const options of objects) start.push(start.at(-1)! + options.length);
  const flat = objects.flat();
  return {
    capacity,
    start: Uint32Array.from(start),
    weights: Float64Array.from(flat, ([weight]) => weight),
    values: Float64Array.from(flat, ([, value]) => value),
  };
}

/** Adds up what the choice really weighs and is worth, and fails when that is not what the solution says. */
function expectConsistent({ start, weights, values, capacity }: KnapsackInstance, solution: KnapsackSolution): void {
  let weight = 0;
  let value = 0;
  for (const [i, option] of solution.choice.entries()) {
    if (option < 0) continue;
    expect(option).toBeLessThan(start[i + 1]! - start[i]!);
    weight += weights[start[i]! + option]!;
    value += values[start[i]! + option]!;
  }
  expect(weight).toBeLessThanOrEqual(capacity);
  expect(solution.weight).toBe(weight);
  expect(solution.value).toBe(value);
  expect(solution.upperBound).toBeGreaterThanOrEqual(solution.value);
}

function bestByEnumeration({ capacity, start, weights, values }: KnapsackInstance): number {
  const visit = (i: number, room: number): number => {
    if (i === start.length - 1) return 0;
    let best = visit(i + 1, room);
    for (let j = start[i]!; j < start[i + 1]!; j++) {
      if (weights[j]! <= room) best = Math.max(best, values[j]! + visit(i + 1, room - weights[j]!));
    }
    return best;
  };
  return visit(0, capacity);
}

describe("solveKnapsack", () => {
  test("takes the pair that fills the capacity rather than the single densest option", () => {
    // Density alone would take the first object (3 per unit) and then have no room for both others.
    const solution = solveKnapsack(instanceOf(10, [[[6, 18]], [[5, 14]], [[5, 14]]]));
    expect(solution).toMatchObject({ value: 28, weight: 10, upperBound: 28, optimal: true });
    expect([...solution.choice]).toEqual([-1, 0, 0]);
  });

  test("takes an option below the convex hull when only that one fits", () => {
    // The hull of the only object is (10, 100); (4, 4) lies far below it.
    const solution = solveKnapsack(
      instanceOf(9, [
        [
          [10, 100],
          [4, 4],
        ],
      ]),
    );
    expect(solution).toMatchObject({ value: 4, weight: 4, optimal: true });
  });

  test("no objects, no capacity or nothing of value: the empty configuration", () => {
    expect(solveKnapsack(instanceOf(5, []))).toMatchObject({ value: 0, weight: 0, optimal: true });
    expect(solveKnapsack(instanceOf(0, [[[1, 5]]]))).toMatchObject({ value: 0, weight: 0, optimal: true });
    expect([...solveKnapsack(instanceOf(5, [[[1, 0]]])).choice]).toEqual([-1]);
  });

  test("counts exactly up to a capacity of 2^53", () => {
    const half = 2 ** 52;
    const solution = solveKnapsack(instanceOf(2 ** 53, [[[half, 3]], [[half + 1, 4]], [[half, 2]]]));
    expect(solution).toMatchObject({ value: 5, weight: 2 ** 53, optimal: true });
  });

  test("agrees with enumeration on small arbitrary instances", () => {
    const option = fc.tuple(
      fc.integer({ min: 1, max: 12 }),
      fc.oneof(fc.integer({ min: 0, max: 20 }), fc.double({ min: 0, max: 9, noNaN: true })),
    );
    const objects = fc.array(fc.array(option, { minLength: 1, maxLength: 4 }), { maxLength: 6 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), objects, (capacity, classes) => {
        const instance = instanceOf(capacity, classes);
        const solution = solveKnapsack(instance);
        expectConsistent(instance, solution);
        expect(solution.optimal).toBe(true);
        const best = bestByEnumeration(instance);
        expect(Math.abs(solution.value - best)).toBeLessThanOrEqual(1e-9 * Math.max(1, best));
      }),
      { numRuns: 2000 },
    );
  });

  test.each(Object.keys(FAMILIES))("agrees with plain dynamic programming: %s", (family) => {
    for (let seed = 1; seed <= 120; seed++) {
      const random = seededRandom(seed);
      const size = {
        objects: 1 + random.integer(40),
        options: 1 + random.integer(7),
        weightMax: 1 + random.integer(20),
        fill: random.next(),
      };
      const instance = drawInstance(FAMILIES[family]!, size, random);
      const solution = solveKnapsack(instance);
      const reference = solveKnapsackNaive(instance);
      expectConsistent(instance, solution);
      expect(solution.optimal, `seed ${seed}`).toBe(true);
      expect(Math.abs(solution.value - reference.value), `seed ${seed}`).toBeLessThanOrEqual(1e-9 * reference.value);
    }
  });

  test.each(Object.keys(FAMILIES))(
    "stays within capacity and bound on thousands of objects with byte weights: %s",
    (family) => {
      const random = seededRandom(7);
      const instance = drawInstance(
        FAMILIES[family]!,
        { objects: 3000, options: 5, weightMax: 1e6, fill: 0.2 },
        random,
      );
      // The clock of a test counts calls, so the limit is reached at the same place every time.
      let calls = 0;
      const solution = solveKnapsack(instance, { now: () => calls++, timeLimitMs: 3000 });
      expectConsistent(instance, solution);
      expect(solution.upperBound - solution.value).toBeLessThan(1e-4 * solution.value);
    },
  );

  test("a time limit stops the proof and states the gap", () => {
    const instance = drawInstance(
      FAMILIES["correlated by popularity"]!,
      { objects: 500, options: 5, weightMax: 1e7, fill: 0.3 },
      seededRandom(3),
    );
    let calls = 0;
    const stopped = solveKnapsack(instance, { now: () => calls++, timeLimitMs: 2 });
    expect(stopped.optimal).toBe(false);
    expect(stopped.upperBound).toBeGreaterThan(stopped.value);
    expectConsistent(instance, stopped);
    const solved = solveKnapsack(instance);
    expect(solved.optimal).toBe(true);
    expect(solved.value).toBeLessThanOrEqual(stopped.upperBound);
    expect(solved.value).toBeGreaterThanOrEqual(stopped.value);
  });

  test("does not change its input", () => {
    const instance = drawInstance(
      FAMILIES["subset sum"]!,
      { objects: 50, options: 3, weightMax: 9, fill: 0.5 },
      seededRandom(1),
    );
    const before = JSON.stringify(instance);
    solveKnapsack(instance);
    expect(JSON.stringify(instance)).toBe(before);
  });

  test.each<[string, KnapsackInstance, Record<string, unknown>]>([
    [
      "a weight of zero",
      instanceOf(5, [
        [
          [1, 1],
          [0, 1],
        ],
      ]),
      { object: 0, option: 1, weight: 0 },
    ],
    ["a negative weight", instanceOf(5, [[[-1, 1]]]), { weight: -1 }],
    ["a fractional weight", instanceOf(5, [[[1.5, 1]]]), { weight: 1.5 }],
    ["a weight that is not a number", instanceOf(5, [[[NaN, 1]]]), { weight: NaN }],
    ["a negative value", instanceOf(5, [[[1, 1]], [[1, -1]]]), { object: 1, option: 0, value: -1 }],
    ["a value that is not a number", instanceOf(5, [[[1, NaN]]]), { value: NaN }],
    ["an infinite value", instanceOf(5, [[[1, Infinity]]]), { value: Infinity }],
    ["values that add up to infinity", instanceOf(5, [[[1, 1e308]], [[1, 1e308]]]), { valueSum: Infinity }],
    ["a negative capacity", instanceOf(-1, []), { capacity: -1 }],
    ["a fractional capacity", instanceOf(0.5, []), { capacity: 0.5 }],
    ["a capacity beyond 2^53", instanceOf(2 ** 54, []), { capacity: 2 ** 54 }],
    ["an object without options", instanceOf(5, [[[1, 1]], []]), { object: 1 }],
    ["too few values", { ...instanceOf(5, [[[1, 1]]]), values: new Float64Array(0) }, { options: 1, values: 0 }],
  ])("refuses %s", (_name, instance, details) => {
    let thrown: unknown;
    try {
      solveKnapsack(instance);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(SolverError);
    expect(thrown).toMatchObject({ name: "AgaroseError", code: "KNAPSACK_INVALID", details });
  });
});
