import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { claimName } from "@agarose/storage/commit/names";
import { repairObject } from "@agarose/storage/repair/repair-object";
import { chunkPlace, DOWN, manifestName, startTestWorld, type World } from "../../world.ts";

let world: World;

beforeEach(async () => {
  world = await startTestWorld();
});

afterEach(() => world.close());

const repair = (key: string) => repairObject(key, world.parts());

test.each([
  ["of many stripes", 12_345],
  ["of one stripe", 700],
])("an object %s with as many bad chunks as it survives is whole again, byte for byte", async (_name, bytes) => {
  const body = randomBytes(bytes);
  const put = await world.put("broken", body);
  const [lost, spoiled] = [chunkPlace(put, 1), chunkPlace(put, 4)];
  const before = await Promise.all([world.read(...lost), world.read(...spoiled)]);
  await world.tamper(...lost, () => undefined);
  await world.tamper(...spoiled, (chunk) => chunk.subarray(0, -3));
  const report = await repair("broken");
  expect(report).toMatchObject({
    before: { sound: false },
    after: { sound: true },
    chunksWritten: 2,
    manifestsWritten: 0,
  });
  const after = await Promise.all([world.read(...lost), world.read(...spoiled)]);
  expect(after.every((chunk, index) => chunk.equals(before[index]!))).toBe(true);
});

test("manifests that are missing, damaged or old are rewritten", async () => {
  await world.put("manifests", randomBytes(10));
  const put = await world.put("manifests", randomBytes(20));
  await world.tamper("tokyo", manifestName("manifests"), () => undefined);
  await world.tamper("sydney", manifestName("manifests"), () => Buffer.from("{"));
  expect(await repair("manifests")).toMatchObject({
    chunksWritten: 0,
    manifestsWritten: 2,
    after: { sound: true, version: put.version },
  });
});

test("gives what only a minority holds a new generation in every region", async () => {
  await world.put("minority", randomBytes(10));
  const old = await world.read("paulo", manifestName("minority"));
  const put = await world.put("minority", randomBytes(20));
  await world.tamper("paulo", manifestName("minority"), () => old);
  await world.tamper("tokyo", manifestName("minority"), () => undefined);
  await world.tamper("sydney", manifestName("minority"), () => Buffer.from("{"));
  expect(await repair("minority")).toMatchObject({
    chunksWritten: 0,
    manifestsWritten: 6,
    after: { sound: true, version: put.version },
  });
  const after = JSON.parse((await world.read("tokyo", manifestName("minority"))).toString()) as unknown;
  expect(after).toMatchObject({ generation: put.generation + 1, upload: put.upload });
});

test("passes over a writer that died while it claimed, and over its own first attempt beside that", async () => {
  const put = await world.put("claimed", randomBytes(10));
  for (const region of ["tokyo", "sydney", "paulo"]) {
    await world.tamper(region, manifestName("claimed"), () => undefined);
  }
  const claim = claimName("claimed", put.generation + 1);
  const dead = Buffer.from('{"upload":"dead"}');
  const died = world.stores.slice(0, 4);
  for (const store of died) await store.put(claim, dead, { bytes: dead.length, contentType: "application/json" });
  // No store takes a time from outside, so the listings of these claims say that they are 40 seconds older.
  for (const store of died) {
    const list = store.list.bind(store);
    store.list = async function* (...args) {
      for await (const entry of list(...args)) {
        yield entry.name === claim ? { ...entry, modifiedMs: entry.modifiedMs - 40_000 } : entry;
      }
    };
  }
  expect(await repair("claimed")).toMatchObject({ manifestsWritten: 6, after: { sound: true } });
});

test("a sound object is left alone", async () => {
  await world.put("sound", randomBytes(100));
  let puts = 0;
  world.faults.set("dublin", (request) => {
    if (request.method === "PUT") puts++;
    return false;
  });
  expect(await repair("sound")).toMatchObject({ before: { sound: true }, chunksWritten: 0, manifestsWritten: 0 });
  expect(puts).toBe(0);
});

test("an object that cannot be read any more is an error, and nothing is written", async () => {
  const put = await world.put("gone", randomBytes(100));
  for (const chunk of [0, 2, 5]) await world.tamper(...chunkPlace(put, chunk), () => undefined);
  const names = await world.names();
  await expect(repair("gone")).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
  expect(await world.names()).toEqual(names);
});

test.each([[["repair", "--queued"]], [["repair", "--quick"]], [["repair", "page"]]])(
  "%j --dry-run says what is damaged, and writes and removes nothing",
  async (args) => {
    world.faults.set("tokyo", DOWN);
    const put = await world.put("page", randomBytes(5_000));
    expect(world.fired.get("tokyo")).toBeGreaterThan(0);
    world.faults.clear();
    await world.tamper(...chunkPlace(put, put.placement.indexOf("dublin")), () => undefined);
    const written: string[] = [];
    for (const { region } of world.stores) {
      world.faults.set(region.name, ({ method }, _response, name) => {
        if (method !== "GET" && method !== "HEAD") written.push(`${method} ${name}`);
        return false;
      });
    }
    const { code, stdout } = await world.run([...args, "--dry-run", "--json-lines"]);
    const lines = stdout.toString().trim().split("\n");
    expect([code, written]).toEqual([1, []]);
    expect(JSON.parse(lines[0]!)).toMatchObject({ key: "page", outcome: "damaged", chunksWritten: 0 });
    expect(JSON.parse(lines.at(-1)!)).toMatchObject({ summary: { repaired: 0, dryRun: true } });
    expect((await world.run(args)).code).toBe(0);
    expect(written.some((request) => request.startsWith("PUT chunks/page"))).toBe(true);
  },
);

test("what a region that is down holds cannot be repaired: exit 1", async () => {
  await world.put("down", randomBytes(100));
  world.faults.set("virginia", DOWN);
  const { code, stdout } = await world.run(["repair", "down", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout.toString()).objects).toMatchObject([
    { key: "down", outcome: "damaged", before: { readable: true }, after: { sound: false } },
  ]);
  expect(world.fired.get("virginia")).toBeGreaterThan(0);
  world.faults.clear();
  expect((await world.run(["repair"])).stdout.toString()).toMatch(/^sound +down/);
});
