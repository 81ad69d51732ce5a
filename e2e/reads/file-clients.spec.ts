/**
 * Libraries that read large files by ranges, as they are, in a page under the service worker: `pmtiles` (maps) and
 * `hyparquet` (tables). A region dies while they read.
 */
import type { Page } from "@playwright/test";
import { mapFile } from "@agarose/core/testing";
import type { LocalWorld } from "@agarose/dev-world/client";
import { build } from "esbuild";
import { parquetWriteBuffer } from "hyparquet-writer";
import type * as hyparquet from "hyparquet";
import type * as pmtiles from "pmtiles";
import { zxyToTileId } from "pmtiles";
import { NEAR } from "../cases/faults.ts";
import { openControlledApp } from "../fixtures/app.ts";
import { requestsDuring } from "../fixtures/requests-during.ts";
import { expect, test } from "../fixtures/test.ts";

/** Of one range: the PoP, and each of n chunks at most once, where a region turns out to be down and others are late. */
const REQUESTS_MAX = 13;
const BLOCK_BYTES = 64 * 1024;
/** Columns and rows at zoom 5, far from each other in the file. */
const NEW_TILES: readonly (readonly [x: number, y: number])[] = [
  [10, 10],
  [20, 5],
  [31, 31],
  [5, 20],
  [16, 28],
  [28, 14],
  [8, 2],
];

/** What the page has of the libraries. */
declare const libraries: typeof hyparquet & typeof pmtiles;

/**
 * What the client sent, and the bytes that it got, by `read`. The browser itself repeats a GET whose connection was cut:
 * that counts once.
 */
async function counted(world: LocalWorld, read: () => Promise<void>): Promise<{ requests: number; bytes: number }> {
  const sent = (await requestsDuring(world, read)).filter(({ from, path }) => from === "client" && isOfReads(path));
  const requests = new Set(sent.map(({ to, path, range }) => `${to}${path} ${range}`)).size;
  return { requests, bytes: sent.reduce((sum, { bytes }) => sum + bytes, 0) };
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1]!;

function isOfReads(path: string): boolean {
  return path.startsWith("/v1/read/") || path.includes("/chunks/") || path.includes("/manifests/");
}

async function addLibraries(page: Page): Promise<void> {
  const contents = `export * from "pmtiles"; export * from "hyparquet";`;
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: import.meta.dirname },
    bundle: true,
    format: "iife",
    globalName: "libraries",
    write: false,
  });
  await page.addScriptTag({ content: outputFiles[0]!.text });
}

test("pmtiles pans a map while a region dies", async ({ context, world }) => {
  const tileOf = (id: number): Buffer => Buffer.alloc(4_000 + (id % 200), `tile ${id},`);
  const file = mapFile(zxyToTileId, tileOf);
  await world.put("files/map.pmtiles", file);
  const page = await openControlledApp(context, world);
  await addLibraries(page);
  await page.evaluate(() => {
    Object.assign(globalThis, { map: new libraries.PMTiles("/ec/files/map.pmtiles") });
  });
  const pan = async (x: number, y: number): Promise<void> => {
    const tile = await page.evaluate(
      async ([column, row]) => {
        const { map } = globalThis as never as { map: pmtiles.PMTiles };
        const { data } = (await map.getZxy(5, column, row))!;
        return new TextDecoder().decode(data);
      },
      [x, y] as const,
    );
    expect(tile === tileOf(zxyToTileId(5, x, y)).toString()).toBe(true);
  };
  await counted(world, () => pan(0, 0));
  // Each new tile lies in one block or two. The median, because a busy machine makes the client ask twice.
  const calm = [];
  for (const tile of NEW_TILES) calm.push(await counted(world, () => pan(...tile)));
  expect(median(calm.map(({ requests }) => requests))).toBeLessThanOrEqual(2);
  expect(median(calm.map(({ bytes }) => bytes))).toBeLessThanOrEqual(2.2 * BLOCK_BYTES);
  expect(await counted(world, () => pan(...NEW_TILES.at(-1)!))).toEqual({ requests: 0, bytes: 0 });
  await world.region(NEAR).down();
  for (const x of [3, 12, 27]) {
    for (const y of [30, 17, 4]) {
      const { requests } = await counted(world, () => pan(x, y));
      expect(requests).toBeLessThanOrEqual(REQUESTS_MAX);
    }
  }
});

test("hyparquet queries a column of a table while a region dies", async ({ context, world }) => {
  const rows = 200_000;
  const numbers = Array.from({ length: rows }, (_, i) => (i * 7919) % 100_003);
  const names = numbers.map((number, i) => `row ${i} of the table ${number}`);
  const columnData = [
    { name: "number", data: numbers, type: "INT32" as const },
    { name: "name", data: names, type: "STRING" as const },
  ];
  const file = new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 10_000 }));
  await world.put("files/table.parquet", file);
  const page = await openControlledApp(context, world);
  await addLibraries(page);
  const query = async (rowStart: number, rowEnd: number): Promise<void> => {
    const found = await page.evaluate(
      async ([from, to]) => {
        const url = "/ec/files/table.parquet";
        const table = await libraries.asyncBufferFromUrl({ url });
        const columns = ["number"];
        return libraries.parquetReadObjects({ file: table, columns, rowStart: from, rowEnd: to });
      },
      [rowStart, rowEnd] as const,
    );
    expect(found.map(({ number }) => number as number)).toEqual(numbers.slice(rowStart, rowEnd));
  };
  const first = await counted(world, () => query(20_000, 20_500));
  // The length, the footer, the metadata and a column chunk, each of one request or two.
  expect(first.requests).toBeLessThanOrEqual(8);
  expect(first.bytes).toBeLessThan(file.length / 4);
  await world.region(NEAR).down();
  for (const start of [100, 31_000, 144_321, 198_000]) {
    const { requests } = await counted(world, () => query(start, start + 1_500));
    expect(requests).toBeLessThanOrEqual(REQUESTS_MAX + first.requests);
  }
});

test("a range of another version than If-Match names is refused", async ({ context, world, putRandom }) => {
  await putRandom("files/versions", 5_000_000);
  const page = await openControlledApp(context, world);
  const [first, other] = await page.evaluate(async () => {
    const range = (headers: Record<string, string>): Promise<Response> =>
      fetch("/ec/files/versions", { headers: { range: "bytes=4000000-4000099", ...headers } });
    const { status, headers } = await range({});
    const refused = await range({ "if-match": '"another"' });
    const same = await range({ "if-match": headers.get("etag")! });
    return [status, [refused.status, same.status]] as const;
  });
  expect(first).toBe(206);
  expect(other).toEqual([412, 206]);
});
