import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { collectGarbage } from "./collect-garbage.ts";
import { findOrphans, stillOrphans, type OrphanSearch } from "./find-orphans.ts";
import { DOWN, REGIONS, startTestWorld, type World } from "../../../test/world.ts";

let world: World;
beforeEach(async () => {
  world = await startTestWorld();
});
afterEach(() => world.close());

/** As if all that is there had been there for long. */
const search = (prefix = "", beforeMs = Date.now() + 60_000): OrphanSearch => ({
  stores: world.stores,
  prefix,
  beforeMs,
  signal: new AbortController().signal,
});
const body = (): Buffer => randomBytes(5_000);
const chunks = async (): Promise<string[]> => (await world.names("chunks/")).toSorted();

/** A put whose manifests no region takes, so that its chunks stay behind. */
async function failedPut(key: string, content = body()): Promise<string[]> {
  const before = new Set(await chunks());
  for (const region of REGIONS) {
    world.faults.set(region, (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("manifests/")) return false;
      response.writeHead(403).end();
      return true;
    });
  }
  await expect(world.put(key, content)).rejects.toMatchObject({ code: "STORE_FAILED" });
  world.faults.clear();
  expect(world.fired.get(REGIONS[0])).toBeGreaterThan(0);
  return (await chunks()).filter((name) => !before.has(name));
}

test("chunks of puts that failed and of versions that were replaced are orphans, and nothing else is", async () => {
  await world.put("kept/ü & x.bin", body());
  await world.put("kept/two.bin", body());
  const replaced = (await chunks()).filter((name) => name.includes("two.bin"));
  await world.put("kept/two.bin", body());
  const failed = await failedPut("kept/failed.bin");
  expect(failed).toHaveLength(6);
  const orphans = await findOrphans(search());
  expect(orphans.map(({ region, name }) => `${region}/${name}`).toSorted()).toEqual(
    [...replaced, ...failed].toSorted(),
  );
  expect(orphans.every(({ bytes }) => bytes === 1_250)).toBe(true);
  expect(await findOrphans(search("kept/failed"))).toHaveLength(6);
  expect(await findOrphans(search("elsewhere/"))).toEqual([]);
});

test("what one region's manifest alone names is not an orphan", async () => {
  const put = await world.put("page", body());
  for (const region of REGIONS.slice(1)) await world.tamper(region, "manifests/page@.json", () => undefined);
  expect(put.outcome).toBe("stored");
  expect(await findOrphans(search())).toEqual([]);
});

test("young chunks are left alone: a put may be under way", async () => {
  await failedPut("young.bin");
  expect(await findOrphans(search("", Date.now() - 3_600_000))).toEqual([]);
});

test("while a region does not answer, or a manifest cannot be read, nothing is called an orphan", async () => {
  await failedPut("lost.bin");
  await world.put("page", body());
  world.faults.set(REGIONS[2], DOWN);
  await expect(findOrphans(search())).rejects.toMatchObject({ code: "SOURCE_FAILED" });
  world.faults.clear();
  await world.tamper(REGIONS[3], "manifests/page@.json", (bytes) => bytes.subarray(0, 100));
  await expect(findOrphans(search())).rejects.toMatchObject({ code: "MANIFEST_INVALID" });
});

test("another put of the same bytes never takes chunks that were found to be orphans", async () => {
  const content = body();
  await failedPut("page", content);
  const found = await findOrphans(search());
  expect(found).toHaveLength(6);
  await world.put("page", content);
  expect(await stillOrphans(found, search())).toEqual(found);
  expect((await collectGarbage(search(), true)).orphans).toHaveLength(6);
  expect((await world.get("page")).equals(content)).toBe(true);
});

test("--delete removes orphans, and what cannot be removed is reported", async () => {
  await world.put("page", body());
  const kept = await chunks();
  await failedPut("failed.bin");
  const listed = await collectGarbage(search(), false);
  expect(listed).toMatchObject({ bytes: 7_500, leftovers: [] });
  expect(listed.orphans.map(({ removed }) => removed)).toEqual(Array.from({ length: 6 }, () => false));
  expect(await chunks()).toHaveLength(12);
  world.faults.set(REGIONS[0], (request, response) => {
    if (request.method !== "POST") return false;
    response.writeHead(403).end();
    return true;
  });
  const partly = await collectGarbage(search(), true);
  expect(partly.leftovers.map(({ region }) => region)).toEqual([REGIONS[0]]);
  expect(partly.orphans.filter(({ removed }) => removed)).toHaveLength(5);
  world.faults.clear();
  expect((await collectGarbage(search(), true)).orphans).toHaveLength(1);
  expect(await chunks()).toEqual(kept);
});

test("the command lists without --delete, and spares what is younger than a day", async () => {
  await failedPut("failed.bin");
  const listed = await world.run(["gc", "--json"]);
  expect(listed.code).toBe(0);
  expect(JSON.parse(listed.stdout.toString())).toEqual({
    orphans: [],
    bytes: 0,
    younger: { count: 6, bytes: 7_500 },
    leftovers: [],
  });
  expect(await chunks()).toHaveLength(6);
  expect((await world.run(["gc", "--older-than", "0"])).code).toBe(2);
});
