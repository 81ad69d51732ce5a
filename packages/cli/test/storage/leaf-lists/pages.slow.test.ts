/** An object whose hashes are in pages of its leaf list, through the commands that store, read, check and mend. */
import { randomBytes } from "node:crypto";
import {
  chunkName,
  encodeManifest,
  LEAF_LIST,
  leafListBytes,
  manifestName,
  MANIFEST_BYTES_MAX,
  pageShape,
  type Manifest,
} from "@agarose/core/format";
import { recodeObject } from "@agarose/storage/maintenance/recode-object";
import { repairObject } from "@agarose/storage/repair/repair-object";
import type { PutResult } from "@agarose/storage/objects/put-object";
import { verifyObject } from "@agarose/storage/objects/verify-object";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { chunkPlace, REGIONS, startTestWorld, type Fault, type World } from "../../world.ts";

const KEY = "film.mp4";
/** 301 stripes, whose hashes are in three pages of 128. */
const BODY = randomBytes(300 * 1000 + 7);

let world: World;
let put: PutResult;
let manifest: Manifest;
let listName: string;
let list: Buffer;
beforeEach(async () => {
  world = await startTestWorld({ stripeBytes: 1000, k: 3, m: 3 });
  put = await world.put(KEY, BODY);
  manifest = await manifestOf(KEY);
  listName = chunkName(KEY, put.upload, LEAF_LIST);
  list = await world.read(REGIONS[0], listName);
});
afterEach(() => world.close());

const repair = (quick = false) => repairObject(KEY, world.parts(), { quick });
const refuse: Fault = (request, response, name) => {
  if (request.method !== "PUT" || !name.endsWith(`/${LEAF_LIST}`)) return false;
  request.resume();
  response.writeHead(403).end();
  return true;
};

/** The manifest of a key in one region. */
async function manifestOf(key: string): Promise<Manifest> {
  return JSON.parse((await world.read(REGIONS[5], manifestName(key))).toString()) as Manifest;
}

/** The regions that have the list now, as it was put. */
const holders = (): Promise<string[]> => world.holders(listName, list);

/** The list with two of its pages in each other's place. */
function swapped(bytes: Buffer): Buffer {
  const [first, second] = [0, 1].map((page) => pageShape({ ...manifest, pageStripes: 128 }, page));
  const copy = Buffer.from(bytes);
  bytes.copy(copy, first!.chunkOffset, second!.chunkOffset, second!.chunkOffset + second!.shardBytes);
  bytes.copy(copy, second!.chunkOffset, first!.chunkOffset, first!.chunkOffset + first!.shardBytes);
  return copy;
}

test("is put with a short manifest, and its list in every region", async () => {
  expect(manifest).toMatchObject({ requires: ["pages"], pageStripes: 128, leaves: [...REGIONS] });
  expect(manifest.hashes).toHaveLength(3);
  expect(encodeManifest(manifest).length).toBeLessThan(MANIFEST_BYTES_MAX / 32);
  expect([list.length, leafListBytes(manifest)]).toEqual([301 * 6 * 32, 301 * 6 * 32]);
  expect(await holders()).toEqual([...REGIONS]);
});

test("is read whole and in part, verified, and found unchanged by the next put", async () => {
  expect(await world.get(KEY)).toEqual(BODY);
  for (const start of [0, 127_990, 128_000, 300_000]) {
    expect(await world.get(KEY, { start, end: start + 7 })).toEqual(BODY.subarray(start, start + 7));
  }
  expect(await world.verify(KEY)).toMatchObject({ sound: true, beyondK: 3, chunksSound: 6 });
  expect(await world.put(KEY, BODY)).toMatchObject({ outcome: "unchanged" });
});

test("is repaired without reading more than its list needs, when chunks are lost", async () => {
  for (const chunk of [0, 2, 4]) await world.tamper(...chunkPlace(put, chunk), () => undefined);
  expect(await world.get(KEY)).toEqual(BODY);
  expect(await repair()).toMatchObject({ after: { sound: true }, chunksWritten: 3 });
  expect(await world.verify(KEY)).toMatchObject({ sound: true });
});

test("is stored again in another code", async () => {
  const parts = world.parts({ config: { ...world.config, code: { k: 2, m: 2 } } });
  const recoded = await recodeObject(KEY, parts);
  expect(recoded).toMatchObject({ outcome: "stored", sha256: put.sha256 });
  expect(await manifestOf(KEY)).toMatchObject({ k: 2, m: 2, pageStripes: 128 });
  expect(await world.get(KEY)).toEqual(BODY);
});

describe.each([
  ["is lost", "CHUNK_MISSING", () => undefined],
  ["is cut short", "CHUNK_WRONG_LENGTH", (bytes: Buffer) => bytes.subarray(0, -1)],
  ["is too long", "CHUNK_WRONG_LENGTH", (bytes: Buffer) => Buffer.concat([bytes, bytes])],
  ["has one wrong bit", "CHUNK_CORRUPT", (bytes: Buffer) => Buffer.from(bytes.with(40, bytes[40]! ^ 1))],
  ["has two pages in each other's place", "CHUNK_CORRUPT", swapped],
] as const)("a list that %s", (_name, code, change) => {
  test("in all regions but one changes no byte of a read, and is mended from that one", async () => {
    for (const region of REGIONS.slice(1)) await world.tamper(region, listName, change);
    expect(await world.get(KEY)).toEqual(BODY);
    const verdict = await world.verify(KEY);
    expect(verdict).toMatchObject({ sound: false, readable: true, beyondK: 0, chunksSound: 6 });
    expect(verdict.damage.map((damage) => damage.code)).toEqual(Array.from({ length: 5 }, () => code));
    expect(await repair()).toMatchObject({ after: { sound: true, beyondK: 3 }, chunksWritten: 5 });
    expect(await holders()).toEqual([...REGIONS]);
  });

  test("in all regions ends a read without a byte, and a verify says that nothing can be read", async () => {
    for (const region of REGIONS) await world.tamper(region, listName, change);
    const reads = code === "CHUNK_WRONG_LENGTH" ? { start: 300_000, end: 300_007 } : undefined;
    if (code === "CHUNK_WRONG_LENGTH" && change(list)!.length > list.length) {
      expect(await world.get(KEY)).toEqual(BODY);
    } else {
      await expect(world.get(KEY, reads)).rejects.toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
    }
    expect(await verifyObject(KEY, world.parts())).toMatchObject({ sound: false, readable: false });
  });
});

describe("while a put runs, the list", () => {
  test("that a minority refuses is named there all the same, and repair brings it", async () => {
    for (const region of ["dublin", "tokyo"]) world.faults.set(region, refuse);
    const other = await world.put("other", BODY);
    expect(world.fired.get("dublin")).toBeGreaterThan(0);
    expect(other).toMatchObject({ outcome: "stored", missing: [] });
    expect(await manifestOf("other")).toMatchObject({ leaves: [...REGIONS] });
    expect(await world.get("other")).toEqual(BODY);
    world.faults.clear();
    expect(await verifyObject("other", world.parts(), true)).toMatchObject({ sound: false, readable: true });
    expect(await repairObject("other", world.parts(), { quick: true })).toMatchObject({ after: { sound: true } });
  });

  test("that a majority refuses leaves readers what was there before", async () => {
    for (const region of REGIONS.slice(0, 4)) world.faults.set(region, refuse);
    await expect(world.put(KEY, randomBytes(200_000))).rejects.toMatchObject({ code: "STORE_FAILED" });
    expect(world.fired.get(REGIONS[0])).toBeGreaterThan(0);
    expect(await world.get(KEY)).toEqual(BODY);
  });
});
