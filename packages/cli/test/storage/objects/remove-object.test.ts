/** rm and repair at the same time as puts, and after regions were away. */
import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { manifestName } from "@agarose/core/format";
import { repairObject, type RepairHow } from "@agarose/storage/repair/repair-object";
import { removeObject } from "@agarose/storage/objects/remove-object";
import { chunkPlace, DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";

let world: World;
let key: string;

beforeAll(async () => {
  world = await startTestWorld();
});

beforeEach(() => {
  key = `removal/${randomBytes(4).toString("hex")}`;
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => world.close());

const remove = () => removeObject(key, world.parts());
const repair = (how: RepairHow = {}) => repairObject(key, world.parts(), how);
const recordIn = async (region: string): Promise<Record<string, unknown>> =>
  JSON.parse((await world.read(region, manifestName(key))).toString()) as Record<string, unknown>;

test("rm in the middle of a put takes no chunk of it", async () => {
  await world.put(key, Buffer.from("old"));
  let removed: Awaited<ReturnType<typeof remove>>;
  let started = false;
  world.faults.set("dublin", async (request, _response, name) => {
    if (started || request.method !== "PUT" || !name.startsWith("chunks/")) return false;
    started = true;
    removed = await remove();
    return false;
  });
  expect(await world.put(key, Buffer.from("NEW"))).toMatchObject({ outcome: "stored", missing: [] });
  expect(started).toBe(true);
  // Those of the old version.
  expect(removed!.chunksRemoved).toBe(6);
  expect((await world.get(key)).toString()).toBe("NEW");
  expect(await world.verify(key)).toMatchObject({ sound: true });
});

test("a region that was away takes the tombstone by repair, and does not bring the object back", async () => {
  await world.put(key, Buffer.from("old"));
  world.faults.set("frankfurt", DOWN);
  expect(await remove()).toMatchObject({ regionsWithoutTombstone: [{ region: "frankfurt" }] });
  expect(world.fired.get("frankfurt")).toBeGreaterThan(0);
  world.faults.clear();
  expect((await world.run(["ls", key])).stdout.toString()).toBe("");
  expect(await recordIn("frankfurt")).not.toHaveProperty("deleted");
  expect(await repair()).toMatchObject({
    manifestsWritten: 1,
    chunksWritten: 0,
    after: { sound: true, removed: true },
  });
  expect(await recordIn("frankfurt")).toMatchObject({ deleted: true, generation: 2 });
  await expect(world.get(key)).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  expect(await remove()).toBeUndefined();
});

test("an object that was removed can be put again", async () => {
  await world.put(key, Buffer.from("one"));
  await remove();
  expect(await world.put(key, Buffer.from("two"))).toMatchObject({ outcome: "stored", generation: 3 });
  expect((await world.get(key)).toString()).toBe("two");
});

test("rm names the chunks that it leaves in a region that is not configured", async () => {
  const put = await world.put(key, Buffer.from("content"));
  const [region, name] = chunkPlace(put, 2);
  const stores = world.stores.filter((store) => store.region.name !== region);
  const removed = await removeObject(key, world.parts({ stores }));
  expect(removed).toMatchObject({
    chunksRemoved: 5,
    leftovers: [{ region, name, problem: "the region is not configured" }],
  });
  expect((await world.read(region, name)).length).toBeGreaterThan(0);
});

/** Answers manifests' writes by `status`. */
const refusing =
  (status: number) =>
  (request: { method?: string; resume(): unknown }, response: any, name: string): boolean => {
    if (request.method !== "PUT" || !name.startsWith("manifests/")) return false;
    request.resume();
    response.writeHead(status).end();
    return true;
  };

test("rm without a majority removes nothing", async () => {
  await world.put(key, Buffer.from("kept"));
  for (const region of REGIONS.slice(0, 3)) world.faults.set(region, refusing(400) as never);
  await expect(remove()).rejects.toMatchObject({ code: "STORE_FAILED" });
  expect(world.fired.size).toBe(3);
  world.faults.clear();
  expect((await world.get(key)).toString()).toBe("kept");
  expect(await world.verify(key)).toMatchObject({ sound: true });
});

test("rm is uncertain where regions fail that may have written, and one more ends it", async () => {
  await world.put(key, Buffer.from("kept"));
  for (const region of REGIONS.slice(0, 3)) world.faults.set(region, refusing(500) as never);
  await expect(remove()).rejects.toMatchObject({ code: "WRITE_UNCERTAIN" });
  expect(world.fired.size).toBe(3);
  world.faults.clear();
  await remove();
  await expect(world.get(key)).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
});

test.each(["put", "rm"])("a %s in the middle of a repair is not undone by it", async (verb) => {
  const first = await world.put(key, randomBytes(5000));
  await world.tamper("sydney", manifestName(key), () => undefined);
  await world.tamper(...chunkPlace(first, 1), () => undefined);
  let ran = false;
  world.faults.set("dublin", async (request, _response, name) => {
    if (ran || request.method !== "PUT" || !name.startsWith("chunks/")) return false;
    ran = true;
    world.faults.clear();
    await (verb === "put" ? world.put(key, Buffer.from("NEW")) : remove());
    return false;
  });
  expect(await repair()).toMatchObject({ manifestsWritten: 0 });
  expect(ran).toBe(true);
  const generations = await Promise.all(REGIONS.map(async (region) => (await recordIn(region))["generation"]));
  expect(generations).toEqual([2, 2, 2, 2, 2, 2]);
  if (verb === "put") expect((await world.get(key)).toString()).toBe("NEW");
  else await expect(world.get(key)).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
});

test("repair makes what a put could not store, and empties the queue", async () => {
  world.faults.set("tokyo", DOWN);
  const body = randomBytes(5000);
  const put = await world.put(key, body);
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(put.missing).toEqual([4]);
  world.faults.clear();
  const queued = async () => (await world.names("repairs/")).filter((name) => name.includes(key));
  expect(await queued()).toHaveLength(5);
  expect(await repair()).toMatchObject({ chunksWritten: 1, after: { sound: true } });
  expect(await queued()).toEqual([]);
  expect(await recordIn("tokyo")).not.toHaveProperty("missing");
  expect((await world.get(key)).equals(body)).toBe(true);
});

test("a quick repair of one lost chunk reads at most k + 2 chunks", async () => {
  const body = randomBytes(60_000);
  const put = await world.put(key, body, { config: { ...world.config, stripeBytes: 20_000 } });
  await world.tamper(...chunkPlace(put, 1), () => undefined);
  let bytesRead = 0;
  for (const region of REGIONS) {
    world.faults.set(region, (request, response, name) => {
      if (request.method !== "GET" || !name.startsWith("chunks/")) return false;
      response.on("finish", () => (bytesRead += Number(response.getHeader("content-length"))));
      return false;
    });
  }
  const report = await repair({ quick: true });
  world.faults.clear();
  expect(report).toMatchObject({ chunksWritten: 1, after: { sound: true } });
  expect(bytesRead).toBeGreaterThanOrEqual(4 * 15_000);
  expect(bytesRead).toBeLessThanOrEqual(6 * 15_000);
  expect(await world.verify(key)).toMatchObject({ sound: true });
});
