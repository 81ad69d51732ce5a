import { afterAll, beforeAll, expect, test } from "vitest";
import { POP, startWorld, type TestWorld } from "./world.ts";

/** A shard's methods, called through Miniflare. */
interface Shard {
  count(entries: [string, number][]): Promise<void>;
  closePeriod(limit: number): Promise<{ key: string; popularity: number }[]>;
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
    { key: "a", popularity: 8 },
    { key: "b", popularity: 0.8 },
  ]);
  await monitor.count([["b", 100]]);
  const [first, second] = await monitor.closePeriod(10);
  expect(first).toEqual({ key: "b", popularity: expect.closeTo(80.16) });
  expect(second).toEqual({ key: "a", popularity: expect.closeTo(1.6) });
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
