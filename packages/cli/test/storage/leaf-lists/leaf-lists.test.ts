/** The leaf list of an object through the commands that clean, check and mend: gc, verify and repair. */
import { randomBytes } from "node:crypto";
import { chunkName, LEAF_LIST } from "@agarose/core/format";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { collectGarbage } from "@agarose/storage/maintenance/gc/collect-garbage";
import type { GarbageUpload } from "@agarose/storage/maintenance/gc/search";
import { repairObject } from "@agarose/storage/repair/repair-object";
import type { PutResult } from "@agarose/storage/objects/put-object";
import { verifyObject } from "@agarose/storage/objects/verify-object";
import { chunkPlace, REGIONS, startTestWorld, type World } from "../../world.ts";

const KEY = "video.mp4";
/** Three stripes, each of whose shards has five blocks. */
const BODY = randomBytes(2_300_000);

let world: World;
let put: PutResult;
let listName: string;
let list: Buffer;
beforeEach(async () => {
  world = await startTestWorld({ stripeBytes: 1_000_000, k: 3, m: 3 });
  put = await world.put(KEY, BODY);
  listName = chunkName(KEY, put.upload, LEAF_LIST);
  list = await world.read(REGIONS[0], listName);
});
afterEach(() => world.close());

const repair = (quick = false) => repairObject(KEY, world.parts(), { quick });

/** The regions that have the list now, as it was put. */
const holders = (): Promise<string[]> => world.holders(listName, list);

test("a garbage collection keeps it as long as the object, and takes it with a version that was replaced", async () => {
  const collect = async () => {
    const states: string[] = [];
    const onUpload = ({ state }: GarbageUpload): unknown => states.push(state);
    await collectGarbage({ prefix: "", removes: true, olderThanMs: 0, onUpload }, world.parts());
    return states;
  };
  await collect();
  await collect();
  expect(await holders()).toEqual([...REGIONS]);
  expect(await world.get(KEY, { start: 700_000, end: 700_100 })).toEqual(BODY.subarray(700_000, 700_100));
  await world.put(KEY, randomBytes(700_000));
  await collect();
  expect(await collect()).toEqual(["removed"]);
  expect((await world.names()).filter((name) => name.includes(listName))).toEqual([]);
});

describe.each([
  ["is lost", "CHUNK_MISSING", () => undefined],
  ["is cut short", "CHUNK_WRONG_LENGTH", (bytes: Buffer) => bytes.subarray(0, -1)],
  ["has one wrong bit", "CHUNK_CORRUPT", (bytes: Buffer) => Buffer.from(bytes.with(40, bytes[40]! ^ 1))],
] as const)("one that %s", (_name, code, change) => {
  test("is damage that leaves the object readable, and a copy of another region mends it", async () => {
    await world.tamper("tokyo", listName, change);
    const verdict = await world.verify(KEY);
    expect(verdict).toMatchObject({ sound: false, readable: true, chunksSound: 6, chunks: 6 });
    expect(verdict.damage).toEqual([{ chunk: LEAF_LIST, region: "tokyo", code, stripes: [] }]);
    const report = await repair();
    expect(report).toMatchObject({ before: { sound: false }, after: { sound: true }, chunksWritten: 1 });
    expect(await holders()).toEqual([...REGIONS]);
    expect(await world.verify(KEY)).toMatchObject({ sound: true });
  });
});

test("one that is lost everywhere, with as many chunks as the code can lose, is rebuilt", async () => {
  for (const region of REGIONS) await world.tamper(region, listName, () => undefined);
  for (const chunk of [0, 2, 4]) await world.tamper(...chunkPlace(put, chunk), () => undefined);
  const report = await repair();
  expect(report).toMatchObject({ after: { sound: true }, chunksWritten: 3 + REGIONS.length });
  expect(await holders()).toEqual([...REGIONS]);
  expect(await world.get(KEY)).toEqual(BODY);
});

test("one that is lost is found and mended without reading a chunk of the object", async () => {
  await world.tamper("dublin", listName, () => undefined);
  const verdict = await verifyObject(KEY, world.parts(), true);
  expect(verdict.damage).toMatchObject([{ chunk: LEAF_LIST, region: "dublin", code: "CHUNK_MISSING" }]);
  expect(await repair(true)).toMatchObject({ after: { sound: true }, chunksWritten: 1 });
  expect(await holders()).toEqual([...REGIONS]);
});

test("one in a region that does not answer is left alone, and said so", async () => {
  world.faults.set("sydney", (_request, response, name) => {
    if (name !== listName) return false;
    response.writeHead(503).end();
    return true;
  });
  const report = await repair();
  expect(world.fired.get("sydney")).toBeGreaterThan(0);
  expect(report).toMatchObject({ before: { sound: false, readable: true }, chunksWritten: 0 });
  expect(report.before.damage).toMatchObject([{ chunk: LEAF_LIST, region: "sydney" }]);
});
