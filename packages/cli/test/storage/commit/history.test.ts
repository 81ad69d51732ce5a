/** Commands keep replaced versions for the time that `keep` sets. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { manifestName } from "@agarose/core/format";
import { DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";
import { collectGarbage } from "@agarose/storage/maintenance/gc/collect-garbage";
import type { Config } from "@agarose/storage/config/config";
import type { Store } from "@agarose/storage/buckets/store";
import { removeObject } from "@agarose/storage/objects/remove-object";

const HOUR_MS = 3_600_000;
const KEEP_HOURS = 720;

let world: World;
let config: Config;

beforeAll(async () => {
  world = await startTestWorld();
  config = { ...world.config, keep: [{ prefix: "kept/", time: KEEP_HOURS * HOUR_MS }] };
});

afterAll(() => world.close());

const put = (key: string) => world.put(key, randomBytes(5_000), { config });
const remove = (key: string) => removeObject(key, world.parts({ config }));
const chunksOf = (key: string, upload: string) => world.names(`chunks/${key}!${upload}`);

/** A run of gc, as if copies and marks were as old as given. */
async function gc(key: string, copyHours: number, markHours = 0) {
  const hours = { "history/": copyHours, "garbage/": markHours };
  const stores = world.stores.map((store) => olderBy(hours, store));
  const search = { prefix: key, removes: true, olderThanMs: 24 * HOUR_MS, onUpload: () => {} };
  return collectGarbage(search, world.parts({ config, stores }));
}

/** A store that lists objects of some prefixes as older than they are, but for probes of its clock. */
function olderBy(hours: Readonly<Record<string, number>>, store: Store): Store {
  const list: Store["list"] = async function* (...args) {
    for await (const object of store.list(...args)) {
      const [, age = 0] = Object.entries(hours).find(([prefix]) => object.name.startsWith(prefix)) ?? [];
      const isProbe = object.name.startsWith("garbage/!");
      yield isProbe ? object : { ...object, modifiedMs: object.modifiedMs - age * HOUR_MS };
    }
  };
  return Object.assign(Object.create(store) as Store, {
    region: store.region,
    get: store.get.bind(store),
    put: store.put.bind(store),
    remove: store.remove.bind(store),
    removeMatching: store.removeMatching.bind(store),
    list,
  });
}

test("a put copies the manifest that it replaces to every region, byte for byte", async () => {
  const key = "kept/put";
  const { upload } = await put(key);
  const old = await world.read("paulo", manifestName(key));
  expect(await world.names("history/kept/put!")).toEqual([]);
  await put(key);
  for (const region of REGIONS) expect(await world.read(region, `history/${key}!${upload}.2`)).toEqual(old);
});

test("another content type makes a version of its own, so that the one before can come back with its type", async () => {
  const key = "kept/described";
  const body = randomBytes(5_000);
  const first = await world.put(key, body, { config, contentType: "text/plain" });
  const second = await world.put(key, body, { config, contentType: "text/css" });
  expect(second.upload).not.toBe(first.upload);
  const kept = JSON.parse((await world.read("paulo", `history/${key}!${first.upload}.2`)).toString()) as object;
  expect(kept).toMatchObject({ contentType: "text/plain" });
});

test("rm copies too, and leaves the chunks", async () => {
  const key = "kept/rm";
  const { upload } = await put(key);
  expect(await remove(key)).toMatchObject({ generation: 2, chunksRemoved: 0, leftovers: [] });
  expect(await chunksOf(key, upload)).toHaveLength(6);
  expect(await world.names(`history/${key}!`)).toEqual(REGIONS.map((region) => `${region}/history/${key}!${upload}.2`));
});

test("a key without keep has no copies, and rm deletes its chunks", async () => {
  const first = await put("brief");
  const { upload } = await put("brief");
  expect(await remove("brief")).toMatchObject({ chunksRemoved: 6 });
  expect(await chunksOf("brief", upload)).toEqual([]);
  expect(await chunksOf("brief", first.upload)).toHaveLength(6);
  expect(await world.names("history/brief!")).toEqual([]);
});

test("a version whose copy only a minority takes is not replaced", async () => {
  const key = "kept/few";
  const { upload } = await put(key);
  for (const region of REGIONS.slice(0, 3)) {
    world.faults.set(region, (request, response, name) => {
      if (request.method !== "PUT" || !name.startsWith("history/")) return false;
      response.writeHead(403).end();
      return true;
    });
  }
  await expect(put(key)).rejects.toMatchObject({ code: "STORE_FAILED" });
  for (const region of REGIONS.slice(0, 3)) expect(world.fired.get(region)).toBeGreaterThan(0);
  world.faults.clear();
  for (const region of REGIONS) {
    expect(JSON.parse((await world.read(region, manifestName(key))).toString())).toMatchObject({ upload });
  }
});

test("gc leaves a young copy and its chunks, and takes both after their time, the copy last", async () => {
  const key = "kept/gc";
  const { upload } = await put(key);
  const second = await put(key);
  expect(await gc(key, KEEP_HOURS - 1, 25)).toMatchObject({ found: 0, copiesRemoved: 0 });
  expect(await world.names(`garbage/${key}!`)).toEqual([]);
  expect(await gc(key, KEEP_HOURS + 1)).toMatchObject({ found: 1, copiesRemoved: 0 });
  expect(await chunksOf(key, upload)).toHaveLength(6);
  expect(await gc(key, KEEP_HOURS + 1, 25)).toMatchObject({ found: 1, copiesRemoved: REGIONS.length });
  expect(await chunksOf(key, upload)).toEqual([]);
  expect(await world.names(`history/${key}!`)).toEqual([]);
  expect(await chunksOf(key, second.upload)).toHaveLength(6);
});

test("gc takes all versions of a key that are over by a few requests to a region", async () => {
  const key = "kept/many";
  for (let version = 0; version < 5; version++) await put(key);
  await gc(key, KEEP_HOURS + 1);
  let deletions = 0;
  world.faults.set("dublin", ({ method, url = "" }) => {
    if (method === "POST" && url.includes("delete")) deletions++;
    return false;
  });
  expect(await gc(key, KEEP_HOURS + 1, 25)).toMatchObject({ found: 4, copiesRemoved: 4 * REGIONS.length });
  world.faults.delete("dublin");
  expect(deletions, "the probe of its clock, chunks, marks and copies").toBe(4);
  expect(await world.names(`history/${key}!`)).toEqual([]);
});

test("gc touches nothing of a key whose history a region does not list", async () => {
  const key = "kept/down";
  const { upload } = await put(key);
  await put(key);
  await gc(key, KEEP_HOURS + 1);
  let lists = 0;
  world.faults.set("dublin", (request, response, name) => {
    if (!(request.url ?? "").includes("prefix=history")) return false;
    // The walk has listed it before.
    return ++lists > 1 ? DOWN(request, response, name) : false;
  });
  const { skipped, copiesRemoved } = await gc(key, KEEP_HOURS + 1, 25);
  world.faults.delete("dublin");
  expect(lists).toBeGreaterThan(1);
  expect(skipped).toMatchObject([{ key }]);
  expect(copiesRemoved).toBe(0);
  expect(await chunksOf(key, upload)).toHaveLength(6);
});
