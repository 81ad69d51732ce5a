import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SHARD_KEYS_MAX } from "./request-tally.ts";
import { decodeCounts, SAVED_BYTES_MAX } from "./saved-counts.ts";
import { POP, startWorld, type TestWorld } from "../../test/world.ts";

/** A shard's methods, called through Miniflare. */
interface Shard {
  count(entries: [string, number][]): Promise<void>;
  closePeriod(limit: number): Promise<{ key: string; popularity: number; requests: number }[]>;
  popular(limit: number): Promise<{ key: string; popularity: number }[]>;
  /** Of `limits.worker.ts`. */
  crash(): Promise<void>;
}

let world: TestWorld;
beforeAll(async () => {
  world = await startWorld({}, { limited: true, inspectObjects: true });
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
    { key: "a", popularity: 8, requests: 10, mayFill: true },
    { key: "b", popularity: 0.8, requests: 1, mayFill: true },
  ]);
  await monitor.count([["b", 100]]);
  const [first, second] = await monitor.closePeriod(10);
  expect(first).toMatchObject({ key: "b", popularity: expect.closeTo(80.16), requests: 100 });
  expect(second).toMatchObject({ key: "a", popularity: expect.closeTo(1.6), requests: 0 });
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

const storage = (name: string) => world.pops.miniflare.unsafeGetDurableObjectStorage(POP, "RequestMonitor", { name });

/** The rows that the shard has written of the running period. */
const saved = async (name: string): Promise<Uint8Array[]> => {
  const rows = await (await storage(name)).exec<{ bytes: ArrayBuffer }>("SELECT bytes FROM counts");
  return rows.map(({ bytes }) => new Uint8Array(bytes));
};

const savedCounts = async (name: string): Promise<[string, number][]> =>
  (await saved(name)).flatMap((bytes) => decodeCounts(bytes));

const SAVE_INTERVAL_MS = 5_000;

/** workerd ends the object, with all that it holds in memory; the next call makes a new one from what is stored. */
const crash = async (name: string): Promise<void> => {
  await expect((await shard(name)).crash()).rejects.toThrow();
};

test("counts up to the last write outlive an object that crashes half-way through a period, and count once", async () => {
  const before = await shard("crashed");
  await before.count([
    ["a", 6],
    ["b", 1],
  ]);
  expect(await savedCounts("crashed"), "the first batch is written at once").toHaveLength(2);
  await setTimeout(SAVE_INTERVAL_MS);
  await before.count([["a", 4]]);
  expect((await savedCounts("crashed"))[0], "and so is a batch five seconds later").toEqual(["a", 10]);
  await before.count([["lost", 1]]);
  // Only an object that has read its storage again knows of this one, which shows that the old one is gone.
  const sql = await storage("crashed");
  await sql.exec(`UPDATE counts SET bytes = CAST('[["a",10],["b",1],["late",3]]' AS BLOB)`);
  await crash("crashed");
  const after = await shard("crashed");
  await after.count([["b", 2]]);
  const requests = (keys: { key: string; requests: number }[]) => keys.map((entry) => [entry.key, entry.requests]);
  expect(requests(await after.closePeriod(10))).toEqual([
    ["a", 10],
    ["b", 3],
    ["late", 3],
  ]);
  await crash("crashed");
  expect(requests(await (await shard("crashed")).closePeriod(10))).toEqual([
    ["a", 0],
    ["b", 0],
    ["late", 0],
  ]);
});

test("counts that are written take one row, however many and long the keys are", async () => {
  const monitor = await shard("one row");
  const long = "x".repeat(900);
  await monitor.count([["popular", 5], ...scan(0, 3_000).map(([key]): [string, number] => [`${long}/${key}`, 1])]);
  const parts = await saved("one row");
  expect(decodeCounts(parts[0]!)[0]?.[0]).toBe("popular");
  expect(parts).toHaveLength(1);
  expect(parts[0]!.length).toBeLessThanOrEqual(SAVED_BYTES_MAX);
  expect(parts[0]!.length).toBeGreaterThan(SAVED_BYTES_MAX - 1_000);
});
