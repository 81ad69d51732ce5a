/** The size of objects, compared with the listings of the buckets. */
import { readFile, writeFile } from "node:fs/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { manifestName } from "@agarose/core/format";
import type { Use } from "@agarose/storage/maintenance/measure-use";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

/** The document that `--json` prints. */
type Answer = Use & { readonly unknown: number };

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
});

afterEach(() => world.close());

async function du(...args: string[]) {
  const { code, stdout, stderr } = await world.run(["du", ...args, "--json"]);
  return { code, stderr, answer: JSON.parse(stdout.toString()) as Answer };
}

/** By the listings alone. */
async function listed(region: string, prefix: string): Promise<number> {
  let bytes = 0;
  for await (const object of world.store(region).list(prefix)) bytes += object.bytes;
  return bytes;
}

test("counts every byte of every region once, and what no manifest names", async () => {
  await world.put("a/one", Buffer.alloc(12_000, 1));
  await world.put("a/two", Buffer.alloc(5_000, 2));
  const { upload } = await world.put("b", Buffer.alloc(3_000, 3));
  await world.put("b", Buffer.alloc(4_000, 4));
  const { code, answer } = await du();
  expect(code).toBe(0);
  expect(answer).toMatchObject({ objects: 3, objectBytes: 21_000, unknown: 0 });
  let [all, orphaned] = [0, 0];
  for (const { region, bytes, chunks, orphaned: own } of answer.regions) {
    expect(bytes).toBe(await listed(region, ""));
    expect(chunks + own).toBe(await listed(region, "chunks/"));
    expect(own).toBe(await listed(region, `chunks/b!${upload}/`));
    all += bytes;
    orphaned += own;
  }
  expect(orphaned).toBe(4_500);
  expect(answer).toMatchObject({ storedBytes: all, orphanedBytes: orphaned, overhead: all / 21_000 });
  const below = await du("a/");
  expect(below.answer).toMatchObject({ objects: 2, objectBytes: 17_000, orphanedBytes: 0 });
});

test("reads one manifest of each object", async () => {
  for (let i = 0; i < 10; i++) await world.put(`many/${i}`, Buffer.alloc(2_000, i));
  let reads = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (request) => {
      if (!(request.url ?? "").includes("list-type=2")) reads++;
      return false;
    });
  }
  expect((await du()).answer.objects).toBe(10);
  // A region that takes a second on a busy machine brings five spares.
  expect(reads % 5).toBe(0);
  expect(reads).toBeLessThan(6 * 10);
});

test("a removed object and a put that ended early are no objects, and their chunks are orphaned", async () => {
  await world.put("gone", Buffer.alloc(4_000));
  const { upload } = await world.put("early", Buffer.alloc(4_000));
  for (const store of world.stores) await store.remove([manifestName("early")]);
  await world
    .store("tokyo")
    .put(`chunks/gone!${"0".repeat(32)}/0`, Buffer.alloc(77), { bytes: 77, contentType: "x/y" });
  await world.run(["rm", "gone"]);
  const early = (await Promise.all(REGIONS.map((region) => listed(region, `chunks/early!${upload}/`)))).reduce(
    (a, b) => a + b,
  );
  const { code, answer } = await du();
  expect(code).toBe(0);
  expect(answer).toMatchObject({ objects: 0, objectBytes: 0, orphanedBytes: early + 77 });
});

test("what a region that is behind still names is not orphaned", async () => {
  await world.put("key", Buffer.alloc(4_000, 1));
  const old = await world.read("paulo", manifestName("key"));
  await world.put("key", Buffer.alloc(4_000, 2));
  await world.store("paulo").put(manifestName("key"), old, { bytes: old.length, contentType: "application/json" });
  expect(await du()).toMatchObject({ code: 0, answer: { objects: 1, objectBytes: 4_000, orphanedBytes: 0 } });
});

test("what `keep` keeps is not orphaned until its time is over", async () => {
  const key = "kept/key";
  const config = { ...world.config, keep: [{ prefix: "kept/", time: 3_600_000 }] };
  const { upload } = await world.put(key, Buffer.alloc(4_000, 1), { config });
  await world.put(key, Buffer.alloc(8_000, 2), { config });
  const sizes = async (prefix: string): Promise<number> =>
    (await Promise.all(REGIONS.map((region) => listed(region, prefix)))).reduce((a, b) => a + b);
  const [chunks, copies, all] = [await sizes(`chunks/${key}!${upload}/`), await sizes("history/"), await sizes("")];
  expect(copies).toBeGreaterThan(0);
  const write = async (time: string): Promise<void> => {
    const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
    await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ prefix: "kept/", time }] }));
  };
  await write("1h");
  const { code, answer } = await du();
  expect(code).toBe(0);
  expect(answer).toMatchObject({ objects: 1, keptBytes: chunks + copies, orphanedBytes: 0, storedBytes: all });
  const text = (await world.run(["du"])).stdout.toString();
  expect(text).toContain("are of replaced versions that `keep` keeps");
  expect(text).not.toContain("orphaned:");
  // Copies whose time is over keep nothing: gc removes the chunks.
  await write("0h");
  expect((await du()).answer).toMatchObject({ keptBytes: 0, orphanedBytes: chunks, storedBytes: all });
});

test("prices the regions that have a price, and says which have none", async () => {
  await world.put("key", Buffer.alloc(40_000, 1));
  const config = JSON.parse(await readFile(world.configPath, "utf8")) as { regions: object[] };
  const regions = config.regions.map((region, index) =>
    index < 5 ? { ...region, storageUsdPerGbMonth: 10 * index } : region,
  );
  await writeFile(world.configPath, JSON.stringify({ ...config, regions }));
  const { answer, stderr } = await du("--cost");
  expect(stderr).toContain("no price of sydney");
  const expected = answer.regions.slice(0, 5).reduce((sum, { bytes }, index) => sum + (bytes / 1e9) * 10 * index, 0);
  expect(answer.usdPerMonth).toBeCloseTo(expected, 12);
  expect(answer.orphanedUsdPerMonth).toBe(0);
  expect(answer.regions[1]!.usdPerMonth).toBeCloseTo((answer.regions[1]!.bytes / 1e9) * 10, 12);
  const text = (await world.run(["du", "--cost"])).stdout.toString();
  expect(text).toContain("1 object of 39.1 KiB: ");
  expect(text).toContain("a month");
});

test("a region that is down is missing in the sums, and makes the command fail", async () => {
  await world.put("key", Buffer.alloc(4_000, 1));
  world.faults.set("dublin", DOWN);
  const { code, answer, stderr } = await du();
  expect(world.fired.get("dublin")).toBeGreaterThan(0);
  expect(code).toBe(1);
  expect(stderr).toContain("dublin is missing in these sums");
  expect(answer).toMatchObject({ objects: 1, orphanedBytes: 0 });
  expect(answer.regions.find(({ region }) => region === "dublin")).toMatchObject({ bytes: 0 });
});
