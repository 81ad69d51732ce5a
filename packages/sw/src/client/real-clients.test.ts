/**
 * Libraries that read files by ranges, as they are, over a client's reads: `pmtiles` (maps) and `hyparquet` (tables).
 * A region dies while they read, and a file changes while they read.
 */
import { mapFile } from "@agarose/core/testing";
import { parquetReadObjects, parquetMetadataAsync, type AsyncBuffer } from "hyparquet";
import { parquetWriteBuffer } from "hyparquet-writer";
import { PMTiles, zxyToTileId, type RangeResponse, type Source } from "pmtiles";
import { expect, test } from "vitest";
import type { ObjectClient } from "./object-client.ts";
import { FakeWorld, sampleBytes } from "../../test/fake-world.ts";

const KEY = "data/file";
/** Shards of 64 KiB. These objects have no leaf list, so a shard is what a small range takes. */
const STRIPE_BYTES = 4 * 64 * 1024;

/** A client of a world that holds `file`, with the plan of it, and what its reads took. */
async function startWorld(file: Uint8Array) {
  const world = new FakeWorld();
  world.put(KEY, file, { stripeBytes: STRIPE_BYTES });
  const client = world.client();
  await world.clock.settle(client.probe(true));
  return { world, client };
}

/** A range read, as the service worker answers a page's fetch. */
async function readRange(
  client: ObjectClient,
  offset: number,
  length: number,
  more: Record<string, string> = {},
): Promise<{ status: number; etag: string; data: ArrayBuffer }> {
  const headers = new Headers({ range: `bytes=${offset}-${offset + length - 1}`, ...more });
  const answer = await client.answer({ key: KEY, method: "GET", headers });
  const body = new Response(answer.body as ReadableStream<Uint8Array<ArrayBuffer>> | null);
  return { status: answer.status, etag: answer.headers["etag"]!, data: await body.arrayBuffer() };
}

const tileOf = (id: number): Uint8Array => sampleBytes(900 + (id % 200), id + 1);

/** The library's way to a file: it compares the ETags of all ranges itself. */
function mapSource(client: ObjectClient): Source {
  return {
    getKey: () => KEY,
    async getBytes(offset, length, _signal, etag): Promise<RangeResponse> {
      const answer = await readRange(client, offset, length, etag ? { "if-match": etag } : {});
      if (answer.status === 412) throw new Error("the file has changed");
      return { data: answer.data, etag: answer.etag };
    },
  };
}

test("a map is panned by pmtiles while a region dies, for a few shards of the file", async () => {
  const { world, client } = await startWorld(mapFile(zxyToTileId, tileOf));
  const map = new PMTiles(mapSource(client));
  const pan = async (x: number, y: number): Promise<void> => {
    const tile = await world.clock.settle(map.getZxy(5, x, y));
    expect(new Uint8Array(tile!.data)).toEqual(tileOf(zxyToTileId(5, x, y)));
  };
  await pan(0, 0);
  world.log.length = 0;
  for (const y of [0, 1, 2, 3]) await pan(1, y);
  const calm = world.requests().filter(({ to }) => to.startsWith("r")).length;
  expect(calm, "neighbours are in the same blocks").toBeLessThanOrEqual(6);
  for (const region of world.regions.slice(0, 2)) region.fault = "down";
  world.log.length = 0;
  for (const x of [31, 20, 9]) for (const y of [30, 17, 4]) await pan(x, y);
  expect(
    world.requests().some(({ to }) => to === "r0" || to === "r1"),
    "the dead regions were asked",
  ).toBe(true);
});

test("a table is queried by hyparquet while a region dies: the columns that it asks for, row for row", async () => {
  const rows = 60_000;
  const numbers = Array.from({ length: rows }, (_, i) => (i * 7919) % 100_003);
  const names = Array.from({ length: rows }, (_, i) => `row ${i} of the table ${numbers[i]}`);
  const file = parquetWriteBuffer({
    columnData: [
      { name: "number", data: numbers, type: "INT32" },
      { name: "name", data: names, type: "STRING" },
    ],
    rowGroupSize: 5_000,
  });
  const { world, client } = await startWorld(new Uint8Array(file));
  let etag: string | undefined;
  const source: AsyncBuffer = {
    byteLength: file.byteLength,
    async slice(start, end = file.byteLength) {
      const answer = await readRange(client, start, end - start, etag ? { "if-match": etag } : {});
      expect(answer.status).toBe(206);
      etag = answer.etag;
      return answer.data;
    },
  };
  const metadata = await world.clock.settle(parquetMetadataAsync(source));
  expect(Number(metadata.num_rows)).toBe(rows);
  world.log.length = 0;
  const query = async (rowStart: number, rowEnd: number): Promise<void> => {
    const found = await world.clock.settle(
      parquetReadObjects({ file: source, metadata, columns: ["number"], rowStart, rowEnd }),
    );
    expect(found.map(({ number }) => number as number)).toEqual(numbers.slice(rowStart, rowEnd));
  };
  await query(20_000, 20_500);
  expect(world.requests().filter(({ to }) => to.startsWith("r")).length).toBeLessThanOrEqual(6);
  for (const region of world.regions.slice(0, 2)) region.fault = "down";
  world.log.length = 0;
  for (const start of [100, 31_000, 44_321, 58_000]) await query(start, start + 1_500);
  expect(
    world.requests().some(({ to }) => to === "r0" || to === "r1"),
    "the dead regions were asked",
  ).toBe(true);
});

test("a file that changes between two ranges is refused by If-Match, and never mixed", async () => {
  const [before, after] = [sampleBytes(1_000_000, 1), sampleBytes(1_000_000, 2)];
  const { world, client } = await startWorld(before);
  const first = await world.clock.settle(readRange(client, 500, 100));
  expect(new Uint8Array(first.data)).toEqual(before.subarray(500, 600));
  world.put(KEY, after, { stripeBytes: STRIPE_BYTES });
  await world.clock.pass(61_000);
  const second = await world.clock.settle(readRange(client, 600_000, 100, { "if-match": first.etag }));
  expect(second.status).toBe(412);
  const third = await world.clock.settle(readRange(client, 600_000, 100));
  expect(new Uint8Array(third.data)).toEqual(after.subarray(600_000, 600_100));
  expect(third.etag).not.toBe(first.etag);
});
