import * as fc from "fast-check";
import { expect, test } from "vitest";
import { choosePlaces, type HotObject, type Reader } from "./extra-places.ts";

const REGIONS = ["a", "b", "c", "d"];
const OBJECT = { k: 2, chunkBytes: 10, placement: ["a", "b", "c"], extra: [] };

function reader(
  requests: Record<string, number>,
  latenciesMs: readonly number[],
  cached: Record<string, number> = {},
): Reader {
  const latencies = new Map(REGIONS.map((name, i) => [name, { meanMs: latenciesMs[i]!, sdMs: 1 }]));
  return { requests: new Map(Object.entries(requests)), cached: new Map(Object.entries(cached)), latencies };
}

test("the region nearest to those who wait gets a chunk, and what a cache has whole gets none", () => {
  const objects = ["x", "y", "z"].map((key): HotObject => ({ key, ...OBJECT }));
  const near = reader({ x: 5, y: 9 }, [10, 100, 200, 300], { y: 2 });
  const far = reader({ x: 1 }, [300, 200, 100, 10]);
  const places = choosePlaces({ objects, readers: [near, far], regions: REGIONS, bytesMax: 10 });
  expect([...places]).toEqual([["x", ["a"]]]);
});

test("a chunk stays where it is until another choice saves twice as much", () => {
  const objects = [
    { key: "x", ...OBJECT, extra: ["a"] },
    { key: "y", ...OBJECT },
  ];
  const choose = (x: number, y: number) =>
    [
      ...choosePlaces({ objects, readers: [reader({ x, y }, [10, 90, 200, 300])], regions: REGIONS, bytesMax: 10 }),
    ].flat();
  expect(choose(5, 9)).toEqual(["x", ["a"]]);
  expect(choose(5, 11)).toEqual(["y", ["a"]]);
  expect(choose(0, 0), "there is room").toEqual(["x", ["a"]]);
});

test("the bytes hold, no region has two chunks, and only regions that may get some do (property)", () => {
  const object = fc.record({
    k: fc.integer({ min: 1, max: 4 }),
    chunkBytes: fc.integer({ min: 1, max: 30 }),
    extra: fc.subarray(REGIONS),
    requests: fc.nat(20),
  });
  fc.assert(
    fc.property(fc.array(object, { maxLength: 6 }), fc.nat(100), fc.subarray(REGIONS), (drawn, bytesMax, regions) => {
      const objects = drawn.map((one, i) => ({ ...one, key: `${i}`, placement: REGIONS.slice(0, one.k) }));
      const requests = Object.fromEntries(objects.map(({ key, requests: count }) => [key, count]));
      const places = choosePlaces({ objects, readers: [reader(requests, [10, 90, 200, 300])], regions, bytesMax });
      let bytes = 0;
      for (const [key, own] of places) {
        bytes += own.length * objects[Number(key)]!.chunkBytes;
        expect(new Set(own).size).toBe(own.length);
        for (const region of own) expect(regions).toContain(region);
      }
      expect(bytes).toBeLessThanOrEqual(bytesMax);
    }),
  );
});
