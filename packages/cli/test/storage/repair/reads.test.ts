import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { GivenParts } from "@agarose/storage/parts";
import { repairObject, type RepairHow } from "@agarose/storage/repair/repair-object";
import { recordedClock } from "../../recorded-clock.ts";
import { chunkPlace, REGIONS, startTestWorld, type World } from "../../world.ts";

const K = 4;
const M = 4;
const READS_MAX = K + 2;

let world: World;
/** The chunks that were asked for by GET, one entry for each request. */
let reads: string[];

beforeEach(async () => {
  world = await startTestWorld({ k: K, m: M, survive: { regions: 2, providers: 2 } });
  reads = [];
  for (const region of REGIONS) {
    world.faults.set(region, (request, _response, name) => {
      if (request.method === "GET" && name.startsWith("chunks/")) reads.push(name);
      return false;
    });
  }
});

afterEach(() => world.close());

const repair = (key: string, { quick = false, ...more }: RepairHow & Partial<GivenParts> = {}) =>
  repairObject(key, world.parts(more), { quick });

const SIZES = [
  ["one stripe", 700],
  ["many stripes", 12_345],
] as const;
const ALL = Array.from({ length: K + M }, (_, chunk) => chunk);

describe.each(SIZES)("an object of %s", (_name, bytes) => {
  test("a sound one is checked by at most k + 2 reads, and by none with quick", async () => {
    await world.put("sound", randomBytes(bytes));
    expect(await repair("sound", { quick: true })).toMatchObject({ before: { sound: true } });
    expect(reads).toEqual([]);
    expect(await repair("sound")).toMatchObject({ before: { sound: true }, chunksWritten: 0 });
    expect(reads.length).toBeGreaterThanOrEqual(K);
    expect(reads.length).toBeLessThanOrEqual(READS_MAX);
  });

  test.each([true, false])("as many lost chunks as it survives cost at most k + 2 reads (quick: %s)", async (quick) => {
    const body = randomBytes(bytes);
    const put = await world.put("lost", body);
    for (const chunk of [0, 2, 5]) await world.tamper(...chunkPlace(put, chunk), () => undefined);
    reads = [];
    expect(await repair("lost", { quick })).toMatchObject({ chunksWritten: 3, after: { sound: true } });
    expect(reads.length).toBeLessThanOrEqual(quick ? K : READS_MAX);
    expect(await world.verify("lost")).toMatchObject({ sound: true });
    expect((await world.get("lost")).equals(body)).toBe(true);
  });

  test("a flipped bit is found in any chunk, also in those that are not read", async () => {
    const put = await world.put("flipped", randomBytes(bytes));
    let unread = 0;
    for (const chunk of ALL) {
      const [region, name] = chunkPlace(put, chunk);
      const before = await world.read(region, name);
      await world.tamper(region, name, (stored) => Buffer.from(stored).fill(stored[9]! ^ 1, 9, 10));
      reads = [];
      expect(await repair("flipped")).toMatchObject({
        before: { sound: false, damage: [{ chunk, code: "CHUNK_CORRUPT" }] },
        chunksWritten: 1,
        after: { sound: true },
      });
      const asked = new Set(reads);
      expect(asked.size).toBeLessThanOrEqual(READS_MAX);
      // Only damage that shows in the middle of a large object makes it read the sound chunks again.
      expect(reads.length).toBeLessThanOrEqual(bytes > 1000 ? READS_MAX + K : READS_MAX);
      if (!asked.has(name)) unread++;
      expect((await world.read(region, name)).equals(before)).toBe(true);
    }
    expect(unread).toBe(0);
  });

  test("two flipped chunks and a lost one are made again", async () => {
    const put = await world.put("worn", randomBytes(bytes));
    for (const chunk of [1, 6]) {
      await world.tamper(...chunkPlace(put, chunk), (stored) => Buffer.from(stored).fill(stored[3]! ^ 8, 3, 4));
    }
    await world.tamper(...chunkPlace(put, 7), () => undefined);
    reads = [];
    expect(await repair("worn")).toMatchObject({ chunksWritten: 3, after: { sound: true } });
    expect(new Set(reads).size).toBeLessThanOrEqual(READS_MAX);
    expect(await world.verify("worn")).toMatchObject({ sound: true });
  });
});

test("a region that hangs while it is read delays a repair by seconds, and the rest is repaired", async () => {
  const put = await world.put("hung", randomBytes(12_345));
  const [region] = chunkPlace(put, 3);
  let hung = 0;
  world.faults.set(region, (request, response, name) => {
    if (request.method !== "GET" || !name.startsWith("chunks/")) return false;
    hung++;
    response.writeHead(200, { "content-length": "100000" }).write("x");
    return true;
  });
  await world.tamper(...chunkPlace(put, 1), () => undefined);
  const { clock, waitedMs } = recordedClock();
  const report = await repair("hung", { random: () => 0, clock });
  expect(waitedMs()).toBeLessThan(20_000);
  expect(hung).toBeGreaterThan(0);
  expect(report).toMatchObject({ chunksWritten: 1 });
  expect(report.before.damage.map(({ chunk }) => chunk)).toContain(1);
  world.faults.clear();
  expect(await world.verify("hung")).toMatchObject({ sound: true });
});
