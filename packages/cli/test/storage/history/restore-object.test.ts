/** Kept versions that are brought back, by the commands and beside other writers. */
import { randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { chunkName, manifestName, type Manifest } from "@agarose/core/format";
import { DOWN, REGIONS, startTestWorld, type World } from "../../world.ts";
import type { Config } from "@agarose/storage/config/config";
import { loadEncoder } from "@agarose/storage/parts";
import { findRestorable, restoreVersion } from "@agarose/storage/history/restore-object";

let world: World;
let config: Config;

beforeAll(async () => {
  world = await startTestWorld();
  const json = JSON.parse(await readFile(world.configPath, "utf8")) as object;
  await writeFile(world.configPath, JSON.stringify({ ...json, keep: [{ prefix: "kept/", time: "30d" }] }));
  config = { ...world.config, keep: [{ prefix: "kept/", time: 30 * 24 * 3_600_000 }] };
});

afterEach(() => {
  world.faults.clear();
  world.fired.clear();
});

afterAll(() => world.close());

const put = (key: string, bytes: Uint8Array, more = {}) => world.put(key, bytes, { config, ...more });
const options = () => world.parts({ config });

async function run(...args: string[]) {
  const { code, stdout, stderr } = await world.run([...args, "--json"]);
  return { code, stderr, answer: JSON.parse(stdout.toString()) as Record<string, unknown> };
}

async function manifestOf(key: string): Promise<Manifest> {
  return JSON.parse((await world.read("paulo", manifestName(key))).toString()) as Manifest;
}

test("restore puts the newest kept version again, as it was, and keeps what it takes the place of", async () => {
  const key = "kept/page";
  const [old, own] = [randomBytes(5_500), randomBytes(3_000)];
  const about = { contentType: "text/html", headers: { "cache-control": "max-age=60" } };
  const first = await put(key, old, about);
  const second = await put(key, own);
  const { code, answer } = await run("restore", key);
  expect(code).toBe(0);
  const restored = { generation: 1, version: first.version };
  expect(answer).toMatchObject({ key, outcome: "restored", generation: 3, version: first.version, restored });
  expect(await world.get(key)).toEqual(old);
  const manifest = await manifestOf(key);
  expect(manifest).toMatchObject({ ...about, generation: 3 });
  expect([first.upload, second.upload]).not.toContain(manifest.upload);
  expect(await world.names(`history/${key}!${second.upload}`)).toHaveLength(REGIONS.length);
  expect(await world.verify(key)).toMatchObject({ sound: true });
  // Again is back and forth.
  expect((await run("restore", key)).answer).toMatchObject({ generation: 4, restored: { generation: 2 } });
  expect(await world.get(key)).toEqual(own);
});

test("--version takes a generation or a version", async () => {
  const key = "kept/choice";
  const bodies = [0, 1, 2, 3].map((n) => Buffer.alloc(2_000, n));
  const puts = [];
  for (const body of bodies) puts.push(await put(key, body));
  expect((await run("restore", key, "--version", "2")).answer).toMatchObject({ restored: { generation: 2 } });
  expect(await world.get(key)).toEqual(bodies[1]);
  const { version } = puts[0]!;
  expect((await run("restore", key, "--version", version)).answer).toMatchObject({ restored: { generation: 1 } });
  expect(await world.get(key)).toEqual(bodies[0]);
  const { code, answer } = await run("restore", key, "--version", "99");
  expect([code, answer]).toMatchObject([1, { error: { code: "OBJECT_NOT_FOUND", details: { version: "99" } } }]);
});

test("rm --undelete brings removed objects back, under the code of today", async () => {
  const keys = ["kept/one", "kept/two"];
  const body = randomBytes(4_321);
  for (const key of keys) await put(key, body, { config: { ...config, code: { k: 2, m: 4 } } });
  await world.run(["rm", ...keys]);
  const { code, answer } = await run("rm", "--undelete", ...keys);
  expect(code).toBe(0);
  expect(answer).toMatchObject({ objects: keys.map((key) => ({ key, outcome: "restored", generation: 3 })) });
  for (const key of keys) {
    expect(await world.get(key)).toEqual(body);
    expect(await manifestOf(key)).toMatchObject({ k: 4, m: 2 });
  }
  // A restore that was interrupted at its end can be repeated.
  const again = await run("rm", "--undelete", keys[0]!);
  expect(again).toMatchObject({ code: 0, answer: { objects: [{ outcome: "unchanged", generation: 3 }] } });
  // A region that does not answer was not looked at, so the answer is not "unchanged".
  world.faults.set("tokyo", DOWN);
  const beside = await run("rm", "--undelete", keys[0]!);
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
  expect(beside.answer).toMatchObject({
    objects: [{ outcome: "kept", regionsWithoutManifest: [{ region: "tokyo" }] }],
  });
  world.faults.clear();
  await world.run(["rm", ...keys]);
  const text = await world.run(["rm", "--undelete", ...keys]);
  expect(text.stdout.toString()).toMatch(/^restored {4}kept\/one .* generation 3 of \S+, now generation 5\nrestored/u);
});

test("an empty object and one in its manifest come back, too", async () => {
  const auto = { config: { ...config, code: "auto" as const } };
  const bodies = { "kept/empty": Buffer.alloc(0), "kept/inline": Buffer.from("short") };
  for (const [key, body] of Object.entries(bodies)) {
    await put(key, body, auto);
    await world.run(["rm", key]);
    expect(await run("rm", "--undelete", key)).toMatchObject({ code: 0 });
    expect(await world.get(key)).toEqual(body);
  }
});

test("where nothing is kept, restore and --undelete say so and write nothing", async () => {
  await put("brief", Buffer.alloc(2_000, 1));
  await put("brief", Buffer.alloc(2_000, 2));
  await put("kept/first", Buffer.alloc(2_000, 1));
  const before = await world.names();
  for (const args of [
    ["restore", "brief"],
    ["restore", "kept/first"],
    ["restore", "kept/never"],
  ]) {
    expect(await run(...args)).toMatchObject({ code: 1, answer: { error: { code: "OBJECT_NOT_FOUND" } } });
  }
  expect(await run("rm", "--undelete", "kept/never")).toMatchObject({
    answer: { error: { code: "OBJECT_NOT_FOUND" } },
  });
  expect(await run("rm", "--undelete", "kept/first")).toMatchObject({ answer: { error: { code: "USAGE" } } });
  expect(await world.names()).toEqual(before);
});

test("--undelete does not replace what was put since", async () => {
  const key = "kept/since";
  await put(key, randomBytes(2_000));
  await world.run(["rm", key]);
  const own = randomBytes(2_000);
  await put(key, own);
  expect(await run("rm", "--undelete", key)).toMatchObject({ code: 2, answer: { error: { code: "USAGE" } } });
  expect(await world.get(key)).toEqual(own);
});

test("a kept version of which too few chunks are left is refused, with both numbers, before anything is written", async () => {
  const key = "kept/gone";
  const old = await put(key, randomBytes(2_500));
  const own = randomBytes(2_500);
  await put(key, own);
  const lost = [0, 1, 2];
  for (const chunk of lost) {
    const { placement } = (await findRestorable(key, {}, options())).kept;
    await world.store(placement[chunk]!).remove([chunkName(key, old.upload, chunk)]);
    if (chunk < 2) expect((await findRestorable(key, {}, options())).kept.upload).toBe(old.upload);
  }
  const before = await world.names();
  const { code, answer } = await run("restore", key);
  expect(code).toBe(1);
  expect(answer).toMatchObject({ error: { code: "NOT_ENOUGH_CHUNKS", details: { needed: 4, received: 3 } } });
  expect(await world.names()).toEqual(before);
  expect(await world.get(key)).toEqual(own);
});

test("reads around a chunk that is wrong and a region that is down", async () => {
  const key = "kept/damaged";
  const old = randomBytes(5_000);
  await put(key, old);
  await put(key, randomBytes(5_000));
  const found = await findRestorable(key, {}, options());
  await world.tamper(found.kept.placement[0]!, chunkName(key, found.kept.upload, 0), (bytes) => bytes.fill(7));
  const down = found.kept.placement[1]!;
  world.faults.set(down, DOWN);
  const result = await restoreVersion(found, options());
  expect(world.fired.get(down)).toBeGreaterThan(0);
  expect(result).toMatchObject({ outcome: "stored", generation: 3, missing: [expect.any(Number)] });
  world.faults.clear();
  expect(await world.get(key)).toEqual(old);
});

test("a put that comes between the look and the write is not hidden", async () => {
  const key = "kept/meanwhile";
  await put(key, randomBytes(2_000));
  await put(key, randomBytes(2_000));
  const found = await findRestorable(key, {}, options());
  const newer = randomBytes(2_000);
  await put(key, newer);
  await expect(restoreVersion(found, options())).rejects.toMatchObject({ code: "REPLACED_MEANWHILE" });
  expect(await world.get(key)).toEqual(newer);
  // Between its look and its claim.
  const again = await findRestorable(key, {}, options());
  const newest = randomBytes(2_000);
  const encoder = async () => {
    await put(key, newest);
    return loadEncoder();
  };
  await expect(restoreVersion(again, { ...options(), encoder })).rejects.toMatchObject({ code: "REPLACED_MEANWHILE" });
  expect(await world.get(key)).toEqual(newest);
});

test("reads every byte of the kept version once", async () => {
  const key = "kept/once";
  const old = await put(key, randomBytes(20_000));
  await put(key, randomBytes(100));
  const reads: string[] = [];
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      if (request.method === "GET" && name.startsWith(`chunks/${key}!${old.upload}/`))
        reads.push(`${name} ${request.headers.range}`);
      return false;
    });
  }
  await run("restore", key);
  expect(reads.length).toBeGreaterThanOrEqual(4);
  expect(new Set(reads).size).toBe(reads.length);
});
