import { describe, expect, test } from "vitest";
import { PopularityFilter } from "./popularity-filter.ts";
import { seededRandom } from "../../random.ts";
import { PopularityProcess } from "../../simulator/workload.ts";

/** Sum of |estimate - truth| over all objects, for the filter and for plain counts. */
function errors(
  change: { shift?: number; drift?: number },
  requests: number,
  seed: number,
): { filter: number; counts: number } {
  const spec = {
    type: "zipf",
    exponent: 1,
    shiftEverySeconds: change.shift ?? 0,
    driftSwapsPerSecond: change.drift ?? 0,
  } as const;
  const random = seededRandom(seed);
  const process = new PopularityProcess(spec, 500, random.fork(1));
  const draw = random.fork(2);
  const filter = new PopularityFilter(500);
  const counts = new Float64Array(500);
  for (let n = 0; n < requests; n++) {
    process.advance(n / 10);
    const object = process.sample(draw);
    counts[object]! += 1;
    filter.record(object);
  }
  const distance = (estimate: (o: number) => number): number =>
    process.truth().reduce((sum, truth, o) => sum + Math.abs(estimate(o) - truth), 0);
  return { filter: distance((o) => filter.estimate[o]!), counts: distance((o) => counts[o]! / requests) };
}

describe("PopularityFilter", () => {
  test("is nearly as good as plain counts where nothing changes", () => {
    const { filter, counts } = errors({}, 8000, 1);
    expect(counts).toBeLessThan(0.3);
    expect(filter).toBeLessThan(1.15 * counts);
  });

  test("follows a drift that plain counts miss", () => {
    const { filter, counts } = errors({ drift: 1 }, 8000, 1);
    expect(filter).toBeLessThan(0.6 * counts);
  });

  test("starts over soon after everything has changed at once", () => {
    // 4,000 requests of one popularity, then 600 of another.
    const { filter, counts } = errors({ shift: 400 }, 4600, 3);
    expect(counts).toBeGreaterThan(1.2);
    expect(filter).toBeLessThan(0.75 * counts);
  });

  test("estimates stay finite, not negative, and add up to about 1", () => {
    const filter = new PopularityFilter(50);
    const random = seededRandom(9);
    // One object only, then uniform ones: the extremes of the grid.
    for (let n = 0; n < 3000; n++) filter.record(n < 1500 ? 7 : random.integer(50));
    const sum = filter.estimate.reduce((total, q) => total + q, 0);
    for (const q of filter.estimate) expect(q >= 0 && q <= 1).toBe(true);
    expect(sum).toBeGreaterThan(0.7);
    expect(sum).toBeLessThan(1.4);
  });

  test("tracks a limited number of objects and forgets the least popular ones", () => {
    const filter = new PopularityFilter(6_000, 300);
    for (let n = 0; n < 5_000; n++) filter.record(n % 2 === 0 ? 0 : n);
    const tracked = filter.tracked.length;
    expect(tracked).toBeGreaterThan(250);
    expect(tracked).toBeLessThanOrEqual(320);
    expect(filter.estimate[0]).toBeGreaterThan(0.3);
  });
});
