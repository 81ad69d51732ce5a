import { expect, test } from "vitest";
import { AdaptiveWidth, mapAdaptive } from "./adaptive-pool.ts";

const ITEMS = Array.from({ length: 2_000 }, (_, index) => index);

/** A store that takes `limit` at a time and complains of each beyond; returns the widths that were seen. */
async function runAgainst(limit: number, width: AdaptiveWidth): Promise<{ seen: number[]; complaints: number }> {
  const seen: number[] = [];
  let underWay = 0;
  let complaints = 0;
  await mapAdaptive(
    ITEMS,
    width,
    () => 1,
    async () => {
      if (++underWay > limit) {
        complaints++;
        width.throttle();
      }
      seen.push(underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    },
  );
  return { seen, complaints };
}

test("uses a store that takes everything at full width", async () => {
  const { seen, complaints } = await runAgainst(Infinity, new AdaptiveWidth({ start: 4, min: 1, max: 64 }));
  expect(complaints).toBe(0);
  expect(seen[0]).toBe(1);
  expect(Math.max(...seen)).toBe(64);
});

test("large items widen it as fast as as many small ones", async () => {
  const width = new AdaptiveWidth({ start: 8, min: 2, max: 64 });
  let underWay = 0;
  let most = 0;
  await mapAdaptive(
    ITEMS.slice(0, 20),
    width,
    () => 8,
    async () => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setImmediate(resolve));
      underWay--;
    },
  );
  expect(most).toBe(8);
});

test("a store that asks for less gets about what it takes, and few requests beyond", async () => {
  const { seen, complaints } = await runAgainst(10, new AdaptiveWidth({ start: 32, min: 1, max: 64 }));
  const late = seen.slice(500);
  expect(complaints).toBeGreaterThan(0);
  expect(Math.max(...late)).toBeLessThanOrEqual(16);
  expect(late.reduce((sum, one) => sum + one, 0) / late.length).toBeGreaterThan(4);
  expect(complaints).toBeLessThan(ITEMS.length / 10);
});

test("it doubles after each round until the first complaint, and then grows by a quarter", () => {
  const width = new AdaptiveWidth({ start: 8, min: 2, max: 64 });
  const round = (): number => {
    const { units } = width;
    width.begin(units);
    width.end(units);
    return width.units;
  };
  expect([round(), round()]).toEqual([16, 32]);
  width.throttle();
  expect([width.units, round(), round()]).toEqual([16, 20, 25]);
});

test("complaints of one round halve the width once, and never below the least", () => {
  const width = new AdaptiveWidth({ start: 32, min: 2, max: 64 });
  for (let one = 0; one < 32; one++) width.begin();
  for (let one = 0; one < 32; one++) width.throttle();
  expect(width.units).toBe(16);
  for (let one = 0; one < 32; one++) width.end();
  for (let round = 0; round < 9; round++) width.throttle();
  expect(width.units).toBe(2);
});

test("large items count as many, and one that is too large runs alone", async () => {
  let underWay = 0;
  let most = 0;
  const width = new AdaptiveWidth({ start: 8, min: 8, max: 8 });
  const sizes = [1, 20, 4, 4, 4, 1];
  const results = await mapAdaptive(
    sizes,
    width,
    (size) => size,
    async (size) => {
      underWay += size;
      most = Math.max(most, size === 20 ? 0 : underWay);
      if (size === 20) expect(underWay).toBe(20);
      await new Promise((resolve) => setImmediate(resolve));
      underWay -= size;
      return size * 2;
    },
  );
  expect(most).toBeLessThanOrEqual(8);
  expect(results).toEqual([2, 40, 8, 8, 8, 2]);
});

test("the first failure rejects, and nothing starts after it", async () => {
  let started = 0;
  const fail = mapAdaptive(
    ITEMS,
    new AdaptiveWidth({ start: 2, min: 1, max: 2 }),
    () => 1,
    async (item) => {
      started++;
      if (item === 3) throw new Error("fourth");
    },
  );
  await expect(fail).rejects.toThrow("fourth");
  expect(started).toBeLessThan(10);
});
