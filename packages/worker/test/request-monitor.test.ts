import { afterAll, beforeAll, expect, test } from "vitest";
import { SHARD_KEYS_MAX } from "../src/request-tally.ts";
import { POP, startWorld, type TestWorld } from "./world.ts";

/** A shard's methods, called through Miniflare. */
interface Shard {
  count(entries: [string, number][]): Promise<void>;
  closePeriod(limit: number): Promise<{ key: string; popularity: number; requests: number }[]>;
  popular(limit: number): Promise<{ key: string; popularity: number }[]>;
}

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world.close());

const shard = async (name: string): Promise<Shard> => {
  const namespace = await world.pops.miniflare.getDurableObjectNamespace("REQUEST_MONITOR", POP);
  return namespace.get(namespace.idFromName(name)) as unknown as Shard;
};

test("popularity is the moving average of requests per period, 0.8 on the newest", async () => {
  const monitor = await shard("average");
  await monitor.count([["a", 6]]);
  await monitor.count([
    ["a", 4],
    ["b", 1],
  ]);
  expect(await monitor.closePeriod(10)).toEqual([
    { key: "a", popularity: 8, requests: 10 },
    { key: "b", popularity: 0.8, requests: 1 },
  ]);
  await monitor.count([["b", 100]]);
  const [first, second] = await monitor.closePeriod(10);
  expect(first).toEqual({ key: "b", popularity: expect.closeTo(80.16), requests: 100 });
  expect(second).toEqual({ key: "a", popularity: expect.closeTo(1.6), requests: 0 });
  await monitor.count([["a", 1_000]]);
  const known = await monitor.popular(10);
  expect(known, "of closed periods only").toEqual([first, second].map((entry) => ({ ...entry, requests: undefined })));
});

test("only the most popular are returned, and what is not asked for any more is forgotten", async () => {
  const monitor = await shard("limit");
  await monitor.count([
    ["rare", 1],
    ["often", 9],
  ]);
  expect((await monitor.closePeriod(1)).map(({ key }) => key)).toEqual(["often"]);
  // 0.8 x 0.2^3 is above the limit of 0.005, 0.8 x 0.2^4 is below.
  for (let i = 0; i < 3; i++) await monitor.closePeriod(10);
  expect((await monitor.closePeriod(10)).map(({ key }) => key)).toEqual(["often"]);
});

const scan = (from: number, to: number): [string, number][] =>
  Array.from({ length: to - from }, (_, i) => [`once/${from + i}`, 1]);

test("a shard keeps so many keys and no more, and what is asked for again and again gets in although it is full", async () => {
  const monitor = await shard("full");
  await monitor.count(scan(0, SHARD_KEYS_MAX + 100));
  for (let i = 0; i < 5; i++) {
    await monitor.count([["popular", 1], ...scan(SHARD_KEYS_MAX + 100 * (i + 1), SHARD_KEYS_MAX + 100 * (i + 2))]);
  }
  const kept = await monitor.closePeriod(2 * SHARD_KEYS_MAX);
  expect(kept).toHaveLength(SHARD_KEYS_MAX);
  // Asked for once, it is like all the others; the second time it gets in.
  expect(kept[0]).toMatchObject({ key: "popular", requests: 4 });
});
