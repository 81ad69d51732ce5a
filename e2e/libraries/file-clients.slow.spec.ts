/**
 * Libraries that read large files by ranges, as they are, in a page under the service worker: `pmtiles` (maps) and
 * `hyparquet` (tables). A region dies while they read, and then the nearest PoP.
 */
import { mapFile } from "@agarose/core/testing";
import type { LocalWorld } from "@agarose/dev-world/client";
import { parquetWriteBuffer } from "hyparquet-writer";
import type * as hyparquet from "hyparquet";
import type * as pmtiles from "pmtiles";
import { zxyToTileId } from "pmtiles";
import { NEAR } from "../cases/faults.ts";
import type { AppPage } from "../fixtures/app-page.ts";
import { nearestPop, openControlledApp } from "../fixtures/app.ts";
import { addLibrary } from "../fixtures/library.ts";
import { requestsDuring } from "../fixtures/requests-during.ts";
import { expect, test } from "../fixtures/test.ts";

/** Of one range while a region is down, with 9+3: the PoP and k others. */
const REQUESTS_MAX = 10;
const BLOCK_BYTES = 32 * 1024;
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

const EXPORTS = 'export * from "pmtiles"; export * from "hyparquet";';
/** Both libraries, in the page. */
declare const library: typeof hyparquet & typeof pmtiles;

/**
 * * Requests of the client, and the bytes that it got, by `read`. The browser itself repeats a GET whose connection was
 * cut: that counts once.
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

test("pmtiles pans a map while a region dies, and a PoP after it", async ({ context, world }) => {
  const tileOf = (id: number): Buffer => Buffer.alloc(4_000 + (id % 200), `tile ${id},`);
  const file = mapFile(zxyToTileId, tileOf);
  await world.put("files/map.pmtiles", file);
  const page = await openControlledApp(context, world);
  await addLibrary(page, EXPORTS);
  await page.evaluate(() => {
    Object.assign(globalThis, { map: new library.PMTiles("/ec/files/map.pmtiles") });
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
  const down = [];
  for (const x of [3, 12, 27]) for (const y of [30, 17, 4]) down.push(await counted(world, () => pan(x, y)));
  expect(median(down.map(({ requests }) => requests))).toBeLessThanOrEqual(REQUESTS_MAX);
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  const pop = world.pop(await nearestPop(page, world));
  await pop.down();
  for (const x of [6, 18, 25]) await pan(x, 22);
  expect(await pop.fired()).toBeGreaterThan(0);
});

test("hyparquet queries a column of a table while a region dies, and a PoP after it", async ({ context, world }) => {
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
  await addLibrary(page, EXPORTS);
  const query = async (rowStart: number, rowEnd: number): Promise<void> => {
    const found = await page.evaluate(
      async ([from, to]) => {
        const url = "/ec/files/table.parquet";
        const table = await library.asyncBufferFromUrl({ url });
        const columns = ["number"];
        return library.parquetReadObjects({ file: table, columns, rowStart: from, rowEnd: to });
      },
      [rowStart, rowEnd] as const,
    );
    expect(found.map(({ number }) => number as number)).toEqual(numbers.slice(rowStart, rowEnd));
  };
  // The length, the footer, the metadata and a column chunk; then column chunks alone, each of one block or two.
  // Medians, because a busy machine makes the client ask twice.
  const calm = [];
  for (const start of [20_000, 50_000, 80_000, 110_000, 170_000]) {
    calm.push(await counted(world, () => query(start, start + 500)));
  }
  expect(median(calm.map(({ requests }) => requests))).toBeLessThanOrEqual(4);
  expect(median(calm.map(({ bytes }) => bytes))).toBeLessThan(file.length / 8);
  await world.region(NEAR).down();
  const down = [];
  for (const start of [100, 31_000, 144_321, 198_000]) {
    down.push(await counted(world, () => query(start, start + 1_500)));
  }
  expect(median(down.map(({ requests }) => requests))).toBeLessThanOrEqual(REQUESTS_MAX);
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  const pop = world.pop(await nearestPop(page, world));
  await pop.down();
  for (const start of [64_000, 133_000, 186_000]) await query(start, start + 1_500);
  expect(await pop.fired()).toBeGreaterThan(0);
});

/** Puts another file in the place of one that the page has read, and waits until its worker knows. */
async function replace(page: AppPage, world: LocalWorld, key: string, file: Uint8Array): Promise<void> {
  const etag = (): Promise<string | null> =>
    page.evaluate(async (path) => (await fetch(path, { method: "HEAD" })).headers.get("etag"), `/ec/${key}`);
  const before = await etag();
  await world.put(key, file);
  // A PoP names the old version for a minute. The buckets name the new one.
  for (const { name } of world.pops) await world.pop(name).down();
  const learned = async (): Promise<string | null> => {
    // Without this message, the worker uses a plan for a minute.
    await page.evaluate((changed) => {
      navigator.serviceWorker.controller!.postMessage({ agarose: "update", keys: [changed] });
    }, key);
    return etag();
  };
  await expect.poll(learned, "the new version").not.toBe(before);
}

test("pmtiles sees one version only, though its file is replaced while it reads", async ({ context, world }) => {
  const fileOf = (text: string, bytes: number): { file: Uint8Array; tileOf: (id: number) => Buffer } => {
    const tileOf = (id: number): Buffer => Buffer.alloc(bytes + (id % 200), `${text} ${id},`);
    return { file: mapFile(zxyToTileId, tileOf), tileOf };
  };
  const [old, renewed] = [fileOf("old", 4_000), fileOf("renewed", 3_100)];
  await world.put("files/renewed.pmtiles", old.file);
  const page = await openControlledApp(context, world);
  await addLibrary(page, EXPORTS);
  await page.evaluate(() => {
    Object.assign(globalThis, { map: new library.PMTiles("/ec/files/renewed.pmtiles") });
  });
  const tileAt = (x: number, y: number): Promise<string> =>
    page.evaluate(
      async ([column, row]) => {
        const { map } = globalThis as never as { map: pmtiles.PMTiles };
        return new TextDecoder().decode((await map.getZxy(5, column, row))!.data);
      },
      [x, y] as const,
    );
  expect(await tileAt(10, 10)).toBe(old.tileOf(zxyToTileId(5, 10, 10)).toString());
  await replace(page, world, "files/renewed.pmtiles", renewed.file);
  // The library has the old directory, in which these tiles lie elsewhere.
  for (const [x, y] of NEW_TILES) expect(await tileAt(x, y)).toBe(renewed.tileOf(zxyToTileId(5, x, y)).toString());
});

test("hyparquet refuses another version than it began with, by If-Match", async ({ context, world }) => {
  const tableOf = (first: number): Uint8Array => {
    const data = Array.from({ length: 100_000 }, (_, i) => first + ((i * 7919) % 100_003));
    const columnData = [{ name: "number", data, type: "INT32" as const }];
    return new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 10_000 }));
  };
  await world.put("files/renewed.parquet", tableOf(0));
  const page = await openControlledApp(context, world);
  await addLibrary(page, EXPORTS);
  const open = (): Promise<void> =>
    page.evaluate(async () => {
      const url = "/ec/files/renewed.parquet";
      const { headers } = await fetch(url, { method: "HEAD" });
      const requestInit = { headers: { "if-match": headers.get("etag")! } };
      const byteLength = Number(headers.get("content-length"));
      Object.assign(globalThis, { table: await library.asyncBufferFromUrl({ url, byteLength, requestInit }) });
    });
  const rowAt = (row: number): Promise<unknown> =>
    page.evaluate(async (rowStart) => {
      const { table } = globalThis as never as { table: hyparquet.AsyncBuffer };
      const [found] = await library.parquetReadObjects({ file: table, rowStart, rowEnd: rowStart + 1 });
      return found?.["number"];
    }, row);
  await open();
  expect(await rowAt(55_000)).toBe((55_000 * 7919) % 100_003);
  await replace(page, world, "files/renewed.parquet", tableOf(1_000_000));
  await expect(rowAt(85_000)).rejects.toThrow(/412/);
  await open();
  expect(await rowAt(85_000)).toBe(1_000_000 + ((85_000 * 7919) % 100_003));
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
