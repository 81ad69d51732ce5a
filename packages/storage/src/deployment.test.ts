/** The uses of a deployment by a program, over a real S3 endpoint with three regions. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { allOf, listingOtherwise, REGIONS, startThreeRegions, type ThreeRegions } from "../test/three-regions.ts";
import type { Store } from "./buckets/store.ts";
import { openStores } from "./buckets/stores.ts";
import { CLOCK_PREFIX } from "./commit/names.ts";
import { putInForce } from "./commit/fence.ts";
import { configOfFields } from "./config/config.ts";
import { newKeyPair } from "./config/signing.ts";
import { Deployment, openDeployment } from "./deployment.ts";
import { openParts } from "./parts.ts";

let world: ThreeRegions;
let store: Deployment;

beforeEach(async () => {
  world = await startThreeRegions();
  store = await openDeployment(world.config);
});

afterEach(async () => {
  store.close();
  await world.close();
});

async function bytesOf(body: ReadableStream<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await allOf(body));
}

async function keysOf(prefix?: string): Promise<string[]> {
  return (await allOf(store.list(prefix))).map(({ key }) => key);
}

test("the first example of the README runs as it is", async () => {
  const readme = await readFile(new URL("../README.md", import.meta.url), "utf8");
  const inFolder = (name: string): string => join(world.folder, name);
  await writeFile(inFolder("example.mjs"), /```ts\n(.*?)```/s.exec(readme)![1]!);
  await writeFile(inFolder("agarose.config.json"), JSON.stringify(world.config));
  await writeFile(inFolder("a.mp4"), randomBytes(25_000));
  await symlink(fileURLToPath(new URL("../../../node_modules", import.meta.url)), inFolder("node_modules"));
  const { stdout } = await promisify(execFile)(process.execPath, ["example.mjs"], { cwd: world.folder });
  expect(stdout).toMatch(/^films\/a\.mp4 \d{4}-\S+Z\n$/);
  expect(await store.stat("films/a.mp4")).toMatchObject({ bytes: 25_000, contentType: "video/mp4" });
});

test("stores text, bytes and files, and reads, lists and removes them, with a region down", async () => {
  const film = randomBytes(95_000);
  await writeFile(join(world.folder, "film"), film);
  await store.put("note.txt", "Käse", { contentType: "text/plain", headers: { "cache-control": "no-cache" } });
  await store.put("films/a", { file: join(world.folder, "film") });
  await store.put("films/b", film.subarray(0, 5));
  expect(await store.stat("note.txt")).toMatchObject({
    bytes: 5,
    contentType: "text/plain; charset=utf-8",
    headers: { "cache-control": "no-cache" },
  });
  world.down.add("dublin");
  expect((await bytesOf((await store.get("note.txt")).body)).toString()).toBe("Käse");
  // Parts are kept while later ones are read, so that a part whose memory is used again would show.
  expect((await bytesOf((await store.get("films/a")).body)).equals(film)).toBe(true);
  const { body, bytes } = await store.get("films/a", { range: { start: 9_990, end: 30_001 } });
  expect(bytes).toBe(95_000);
  expect((await bytesOf(body)).equals(film.subarray(9_990, 30_001))).toBe(true);
  expect(await keysOf()).toEqual(["films/a", "films/b", "note.txt"]);
  expect(await keysOf("films/")).toEqual(["films/a", "films/b"]);
  expect(await store.remove("films/b")).toMatchObject({ key: "films/b" });
  expect(await store.remove("films/none")).toBeUndefined();
  await expect(store.get("films/b")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  expect(await keysOf("films/")).toEqual(["films/a"]);
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
});

test("reads and writes by the stores that it is given", async () => {
  const called = new Set<string>();
  const stores = openStores(configOfFields(world.config, "the configuration"), {}).map(
    (inner): Store =>
      new Proxy(inner, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name);
          if (typeof member !== "function") return member;
          called.add(`${target.region.name} ${String(name)}`);
          return member.bind(target);
        },
      }),
  );
  const other = await openDeployment(world.config, { stores });
  await other.put("a", "text");
  expect((await bytesOf((await other.get("a")).body)).toString()).toBe("text");
  other.close();
  for (const region of REGIONS) expect([...called]).toEqual(expect.arrayContaining([`${region} put`, `${region} get`]));
  expect(await keysOf()).toEqual(["a"]);
});

test("a range ends with the object, and one that has no byte of it is refused", async () => {
  await store.put("a", "0123456789");
  const textOf = async (start: number, end: number): Promise<string> =>
    (await bytesOf((await store.get("a", { range: { start, end } })).body)).toString();
  expect(await textOf(5, 100)).toBe("56789");
  expect(await textOf(0, 1)).toBe("0");
  for (const [start, end] of [
    [10, 20],
    [5, 2],
    [5, 5],
    [-3, 4],
    [1.5, 3],
    [0, NaN],
  ] as const) {
    await expect(textOf(start, end), `${start} to ${end}`).rejects.toMatchObject({ code: "RANGE_UNSATISFIABLE" });
  }
});

test("verifies what a region missed, and repairs it once a dry run has shown it", async () => {
  world.down.add("tokyo");
  const content = randomBytes(25_000);
  for (const key of ["a", "b"]) expect(await store.put(key, content)).toMatchObject({ missing: [expect.any(Number)] });
  world.down.clear();
  // Another program, which has not seen the region fail.
  const other = await openDeployment(world.config);
  expect(await other.verify("a")).toMatchObject({ sound: false, readable: true });
  const check = other.verifyAll("b");
  expect(await check.next()).toMatchObject({ value: { key: "b", sound: false } });
  expect(await check.next()).toMatchObject({ done: true, value: { objects: 1, damaged: 1, unreadable: 0 } });
  expect(await allOf(other.repair("", { dryRun: true }))).toMatchObject([
    { key: "a", outcome: "damaged" },
    { key: "b", outcome: "damaged" },
  ]);
  const repair = other.repair();
  expect(await repair.next()).toMatchObject({ value: { key: "a", outcome: "repaired" } });
  expect(await repair.next()).toMatchObject({ value: { key: "b", outcome: "repaired" } });
  expect(await repair.next()).toMatchObject({ done: true, value: { repaired: 2, damaged: 0, failed: 0 } });
  expect(await other.verify("a")).toMatchObject({ sound: true });
  other.close();
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
});

test("signs what was stored before there was a key, where the caller vouches for it", async () => {
  await store.put("a", "text");
  const { privateKey, publicKey } = newKeyPair();
  const keyFile = join(world.folder, "key.pem");
  await writeFile(keyFile, privateKey);
  const { unsigned: _unsigned, ...fields } = world.config;
  const config = configOfFields({ ...fields, publicKeys: [publicKey], signing: { keyFile } }, "the configuration");
  const parts = openParts(config, { attempts: 1 }, new AbortController().signal);
  await putInForce({ isFirst: true }, parts);
  const signing = new Deployment(parts);
  expect(await allOf(signing.applyKeys())).toMatchObject([
    { key: "a", outcome: "failed", error: { code: "MANIFEST_UNTRUSTED" } },
  ]);
  expect(await allOf(signing.applyKeys("", { vouches: true, dryRun: true }))).toEqual([{ key: "a", outcome: "due" }]);
  expect(await allOf(signing.applyKeys("", { vouches: true }))).toEqual([{ key: "a", outcome: "applied" }]);
  const again = signing.applyKeys();
  expect(await again.next()).toEqual({ done: false, value: { key: "a", outcome: "current" } });
  expect(await again.next()).toMatchObject({ done: true, value: { current: 1, applied: 0, failed: 0 } });
  signing.close();
});

test("lists versions that `keep` keeps, and puts one of them again", async () => {
  const kept = await openDeployment({ ...world.config, keep: [{ prefix: "", time: "30d" }] });
  await kept.put("a", "first");
  await kept.put("a", "second");
  const { versions } = await kept.versions("a");
  expect(versions.map(({ generation, state, keptUntil }) => [generation, state, keptUntil !== undefined])).toEqual([
    [2, "whole", false],
    [1, "whole", true],
  ]);
  expect(await kept.restore("a", { version: "1" })).toMatchObject({ generation: 3, version: versions[1]!.version });
  expect((await bytesOf((await kept.get("a")).body)).toString()).toBe("first");
  await expect(kept.restore("b")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
  kept.close();
});

/** The same deployment, as if all that it holds had been stored 25 hours earlier. */
function aDayLater(own: object): Deployment {
  return listingOtherwise(own, async function* (listing) {
    for await (const found of listing) {
      yield found.name.startsWith(CLOCK_PREFIX) ? found : { ...found, modifiedMs: found.modifiedMs - 25 * 3_600_000 };
    }
  });
}

test("removes an object only while it is the one that was looked at, and leaves what has replaced it", async () => {
  await store.put("moving", "first");
  const first = await store.stat("moving");
  await store.put("moving", "second");
  await expect(store.remove("moving", first)).rejects.toMatchObject({ code: "REPLACED_MEANWHILE" });
  expect(await store.stat("moving")).toMatchObject({ bytes: 6 });
  expect(await store.remove("moving", await store.stat("moving"))).toMatchObject({ key: "moving" });
  await expect(store.stat("moving")).rejects.toMatchObject({ code: "OBJECT_NOT_FOUND" });
});

test("removes what is too old, and what no manifest names once it was marked for long enough", async () => {
  const expiring = { ...world.config, expire: [{ prefix: "tmp/", time: "1d" }] };
  const today = await openDeployment(expiring);
  await today.put("tmp/a", "text".repeat(10_000));
  for (const text of ["first", "second"]) await today.put("b", text.repeat(10_000));
  expect(await allOf(today.expire())).toEqual([]);
  expect(await allOf(today.gc("", { dryRun: true }))).toMatchObject([{ key: "b", state: "unmarked" }]);
  expect(await allOf(today.gc())).toMatchObject([{ key: "b", state: "marked" }]);
  expect(await allOf(today.gc())).toMatchObject([{ key: "b", state: "waiting" }]);
  const later = aDayLater(expiring);
  expect(await allOf(later.expire({ dryRun: true }))).toMatchObject([{ key: "tmp/a", outcome: "due" }]);
  const walk = later.expire();
  expect(await walk.next()).toMatchObject({ value: { key: "tmp/a", outcome: "removed" } });
  expect(await walk.next()).toMatchObject({ done: true, value: { expired: 1, failed: 0 } });
  expect(await allOf(later.gc())).toMatchObject([{ key: "b", state: "removed" }]);
  expect(await keysOf()).toEqual(["b"]);
  for (const one of [today, later]) one.close();
});

test("a scrub repairs what a region missed, and returns the sums", async () => {
  world.down.add("tokyo");
  await store.put("a", randomBytes(25_000));
  world.down.clear();
  const other = await openDeployment(world.config);
  const walk = other.scrub();
  expect(await walk.next()).toMatchObject({ value: { key: "a", outcome: "repaired" } });
  expect(await walk.next()).toMatchObject({ done: true, value: { objects: 1, repaired: 1, failed: 0 } });
  expect(await other.verify("a")).toMatchObject({ sound: true });
  other.close();
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
});

test("stores objects again under another code, and moves them into a new region", async () => {
  const content = randomBytes(25_000);
  for (const key of ["a", "b"]) await store.put(key, content);
  const coded = await openDeployment({ ...world.config, code: { k: 1, m: 2 } });
  expect(await allOf(coded.recode("a"))).toMatchObject([{ key: "a", outcome: "recoded", from: "2+1", to: "1+2" }]);
  expect(await allOf(coded.recode("a"))).toEqual([]);
  coded.close();
  const regions = world.regionsOf([...REGIONS, "paris"]);
  const wider = await openDeployment({ ...world.config, regions });
  const moved = await allOf(wider.migrate());
  expect(moved.map(({ key }) => key)).toEqual(["a", "b"]);
  expect(moved.filter(({ outcome }) => outcome === "failed")).toEqual([]);
  expect(await allOf(wider.migrate())).toEqual([]);
  for (const key of ["a", "b"]) expect(await wider.verify(key)).toMatchObject({ sound: true });
  expect((await bytesOf((await wider.get("a")).body)).equals(content)).toBe(true);
  wider.close();
});

test("a body errors where too few regions answer, and a reader who leaves ends its requests", async () => {
  const content = randomBytes(400_000);
  await store.put("a", content);
  const opened = await store.get("a");
  const reader = opened.body.getReader();
  await reader.read();
  await reader.cancel();
  const { body } = await store.get("a");
  for (const region of REGIONS) world.down.add(region);
  await expect(bytesOf(body)).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
  await expect(keysOf()).rejects.toMatchObject({ code: expect.stringMatching(/NO_QUORUM|STORE_FAILED|SOURCE_FAILED/) });
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
});

test("a configuration file, and a field that is wrong in one", async () => {
  const path = join(world.folder, "agarose.config.json");
  await writeFile(path, JSON.stringify(world.config));
  const opened = await openDeployment(path);
  await opened.put("a", "text");
  expect(await keysOf()).toEqual(["a"]);
  opened.close();
  await expect(openDeployment({ ...world.config, regions: [] })).rejects.toMatchObject({ code: "CONFIG_INVALID" });
});

test("shards share a verify and a repair: each object is in one of them, and what one repairs the others leave", async () => {
  const keys = Array.from({ length: 12 }, (_, i) => `photo-${i}`);
  world.down.add("dublin");
  for (const key of keys) await store.put(key, key);
  world.down.delete("dublin");
  expect(world.refused.requests, "the fault fired").toBeGreaterThan(0);
  const shards = await Promise.all(
    [1, 2, 3].map((index) => openDeployment(world.config, { shard: { index, count: 3 } })),
  );
  try {
    const verdicts = await Promise.all(shards.map((shard) => allOf(shard.verifyAll("", { quick: true }))));
    expect(
      verdicts
        .flat()
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual(keys.toSorted());
    const repaired = await Promise.all(shards.map((shard) => allOf(shard.repair("", { quick: true }))));
    expect(
      repaired
        .flat()
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual(keys.toSorted());
    expect(new Set(repaired.flat().map(({ outcome }) => outcome))).toEqual(new Set(["repaired"]));
    for (const [i, shard] of shards.entries()) {
      const own = repaired[i]!.map(({ key }) => key);
      expect((await allOf(shard.list())).map(({ key }) => key).toSorted()).toEqual(own.toSorted());
      expect(own.length).toBeGreaterThan(0);
    }
  } finally {
    for (const shard of shards) shard.close();
  }
});
