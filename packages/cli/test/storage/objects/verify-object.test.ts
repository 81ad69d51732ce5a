import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { getObject } from "@agarose/storage/objects/get-object";
import { readManifest } from "@agarose/storage/objects/manifests";
import type { PutResult } from "@agarose/storage/objects/put-object";
import { verifyObject } from "@agarose/storage/objects/verify-object";
import { chunkPlace, DOWN, manifestName, startTestWorld, type World } from "../../world.ts";

let world: World;
let put: PutResult;
let body: Buffer;

beforeEach(async () => {
  world = await startTestWorld();
  body = randomBytes(2500);
  put = await world.put("object", body);
});

afterEach(() => world.close());

test("a sound object is sound", async () => {
  expect(await world.verify("object")).toEqual({
    key: "object",
    version: put.version,
    removed: false,
    sound: true,
    readable: true,
    beyondK: 2,
    manifests: world.config.regions.map(({ name }) => ({ region: name, state: "sound" })),
    chunksSound: 6,
    chunks: 6,
    damage: [],
  });
});

test("a missing chunk is found", async () => {
  const [region, name] = chunkPlace(put, 2);
  await world.tamper(region, name, () => undefined);
  expect(await world.verify("object")).toMatchObject({
    sound: false,
    readable: true,
    chunksSound: 5,
    damage: [{ chunk: 2, region, code: "CHUNK_MISSING", stripes: [0, 1, 2] }],
  });
});

test.each([
  [0, [0]],
  [249, [0]],
  [250, [1]],
  [600, [2]],
])("a flipped bit at byte %i of a chunk is found in stripe %j", async (at, stripes) => {
  const [region, name] = chunkPlace(put, 5);
  await world.tamper(region, name, (bytes) => {
    bytes[at]! ^= 0x80;
    return bytes;
  });
  expect(await world.verify("object")).toMatchObject({
    sound: false,
    readable: true,
    damage: [{ chunk: 5, region, code: "CHUNK_CORRUPT", stripes }],
  });
});

test.each([
  ["one byte short", (bytes: Buffer) => bytes.subarray(0, -1), [2]],
  ["one stripe short", (bytes: Buffer) => bytes.subarray(0, 500), [2]],
  ["one byte long", (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(1)]), []],
  ["empty", () => Buffer.alloc(0), [0, 1, 2]],
])("a chunk that is %s is found", async (_name, change, stripes) => {
  const [region, name] = chunkPlace(put, 0);
  await world.tamper(region, name, change);
  expect(await world.verify("object")).toMatchObject({
    sound: false,
    readable: true,
    damage: [{ chunk: 0, region, code: "CHUNK_WRONG_LENGTH", stripes }],
  });
});

test("a chunk whose connection is cut in several stripes is sound, and one that is cut at once is out of reach", async () => {
  const [region, name] = chunkPlace(put, 3);
  const stored = await world.read(region, name);
  let sentBytes = 300;
  let tries = 0;
  world.faults.set(region, ({ method, socket, headers: { range } }, response, path) => {
    if (method !== "GET" || path !== name || tries++ === 2) return false;
    const rest = stored.subarray(Number(range?.slice("bytes=".length, -1) ?? 0));
    response.writeHead(range === undefined ? 200 : 206, { "content-length": String(rest.length) });
    response.write(rest.subarray(0, sentBytes), () => socket.destroy());
    return true;
  });
  expect(await world.verify("object")).toMatchObject({ sound: true, damage: [] });
  expect([tries, world.fired.get(region)]).toEqual([3, 2]);
  [sentBytes, tries] = [0, 0];
  expect(await world.verify("object")).toMatchObject({ damage: [{ chunk: 3, code: "SOURCE_FAILED" }] });
  expect(tries).toBe(1);
});

test.each([
  ["one stripe", 700],
  ["several stripes", 2500],
])("an object of %s whose chunks are all one byte long is readable if it can be read", async (_name, bytes) => {
  put = await world.put("long", randomBytes(bytes));
  for (const chunk of put.placement.keys()) {
    await world.tamper(...chunkPlace(put, chunk), (stored) => Buffer.concat([stored, Buffer.alloc(1)]));
  }
  const readable = await world.get("long").then(
    () => true,
    () => false,
  );
  expect(await world.verify("long")).toMatchObject({ readable, chunksSound: 0 });
  expect(readable).toBe(bytes > 1000);
});

test("a region that does not answer is named, and m lost chunks still read", async () => {
  world.faults.set("tokyo", DOWN);
  const verdict = await world.verify("object");
  expect(verdict).toMatchObject({ sound: false, readable: true, damage: [{ chunk: 4, code: "SOURCE_FAILED" }] });
  expect(verdict.manifests.find(({ region }) => region === "tokyo")?.state).toBe("unreachable");
  expect(world.fired.get("tokyo")).toBeGreaterThan(0);
});

test("more than m bad shards of one stripe cannot be read; spread over stripes they can", async () => {
  const spoil = async (chunk: number, at: number): Promise<void> => {
    const [region, name] = chunkPlace(put, chunk);
    await world.tamper(region, name, (bytes) => {
      bytes[at]! ^= 1;
      return bytes;
    });
  };
  await spoil(0, 0);
  await spoil(1, 0);
  await spoil(2, 250);
  await spoil(3, 250);
  expect(await world.verify("object")).toMatchObject({ sound: false, readable: true, chunksSound: 2 });
  expect((await world.get("object")).length).toBe(2500);
  await spoil(2, 0);
  expect(await world.verify("object")).toMatchObject({ sound: false, readable: false });
  await expect(world.get("object")).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
});

test("a region that is not configured is named; a read makes do without it", async () => {
  const [missing, ...stores] = world.stores;
  const without = world.parts({ stores });
  const manifest = await readManifest("object", without);
  const parts: Uint8Array[] = [];
  await getObject(manifest, undefined, async (part) => parts.push(part), without);
  expect(Buffer.concat(parts)).toEqual(body);
  expect(await verifyObject("object", without)).toMatchObject({
    sound: false,
    readable: true,
    chunksSound: 5,
    damage: [{ chunk: 0, region: missing!.region.name, code: "REGION_UNKNOWN" }],
  });
});

test("finds a manifest that is missing, damaged or old, and uses the newest", async () => {
  const old = await world.read("dublin", manifestName("object"));
  put = await world.put("object", randomBytes(700));
  await world.tamper("dublin", manifestName("object"), () => old);
  await world.tamper("paulo", manifestName("object"), () => undefined);
  await world.tamper("sydney", manifestName("object"), (bytes) => bytes.subarray(0, 100));
  const verdict = await world.verify("object");
  expect(verdict).toMatchObject({ version: put.version, sound: false, readable: true, damage: [] });
  const states = Object.fromEntries(verdict.manifests.map(({ region, state }) => [region, state]));
  expect(states).toEqual({
    frankfurt: "sound",
    dublin: "stale",
    virginia: "sound",
    paulo: "missing",
    tokyo: "sound",
    sydney: "invalid",
  });
});
