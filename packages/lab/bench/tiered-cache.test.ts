import { expect, test } from "vitest";
import { TieredCache, type TieredRead } from "./tiered-cache.ts";

let fetched = 0;
const read = (more: Partial<TieredRead>): TieredRead => ({
  lower: 0,
  object: 1,
  weight: 1,
  seconds: 0,
  edgeMs: 10,
  hopMs: 30,
  originMs: () => {
    fetched++;
    return 200;
  },
  ...more,
});

test("a miss passes both tiers, and then each of them has the object", () => {
  const cache = new TieredCache(2, { capacity: 10 }, { capacity: 10 });
  expect(cache.read(read({}))).toEqual({ from: "origin", ms: 240 });
  expect(cache.read(read({ seconds: 1 }))).toEqual({ from: "lower", ms: 10 });
  expect(cache.read(read({ seconds: 1, lower: 1 }))).toEqual({ from: "upper", ms: 40 });
});

test("a read that meets a fetch of its own tier, or of another one, waits for the rest and fetches nothing", () => {
  const cache = new TieredCache(2, { capacity: 10 }, { capacity: 10 });
  fetched = 0;
  cache.read(read({}));
  const same = cache.read(read({ seconds: 0.1 }));
  expect(same).toEqual({ from: "joined", ms: expect.closeTo(10 + 130) });
  const other = cache.read(read({ seconds: 0.1, lower: 1 }));
  expect(other).toEqual({ from: "joined", ms: expect.closeTo(10 + 30 + 130) });
  expect(fetched).toBe(1);
});

test("what was read last stays, and an object that does not fit is not kept", () => {
  const cache = new TieredCache(1, { capacity: 2 }, { capacity: 0 });
  for (const [seconds, object] of [1, 2, 1, 3].entries()) cache.read(read({ seconds, object }));
  expect(cache.read(read({ seconds: 9, object: 1 })).from).toBe("lower");
  expect(cache.read(read({ seconds: 10, object: 2 })).from).toBe("origin");
  cache.read(read({ seconds: 11, object: 4, weight: 3 }));
  expect(cache.read(read({ seconds: 12, object: 4, weight: 3 })).from).toBe("origin");
  expect(cache.read(read({ seconds: 13, object: 2 })).from, "nothing left for it").toBe("lower");
});

test("an entry leaves when its time is over", () => {
  const cache = new TieredCache(1, { capacity: 2, ttlSeconds: 60 }, { capacity: 0 });
  cache.read(read({}));
  expect(cache.read(read({ seconds: 60 })).from).toBe("lower");
  expect(cache.read(read({ seconds: 61 })).from).toBe("origin");
});
