import { mkdtemp, open, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { parquetReadObjects } from "hyparquet";
import { PMTiles } from "pmtiles";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PICTURES } from "./index.ts";
import { writeMap } from "./make-map.ts";
import { writeTable } from "./make-table.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-map-"));
  await writeMap(join(folder, "map"), folder);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Whether the pixel of a tile is land: its palette has four shades of sea, then four of land. */
function isLand(png: Uint8Array, x: number, y: number): boolean {
  const data = Buffer.from(png);
  const at = data.indexOf("IDAT");
  const pixels = inflateSync(data.subarray(at + 4, at + 4 + data.readUInt32BE(at - 4)));
  return pixels[y * 257 + 1 + x]! >= 4;
}

test("the map has land and sea where they are, on both sides of the date line", async () => {
  const file = await open(join(folder, "map"));
  const getBytes = async (offset: number, length: number): Promise<{ data: ArrayBuffer }> => {
    const { buffer } = await file.read(new Uint8Array(length), 0, length, offset);
    return { data: buffer.buffer };
  };
  const map = new PMTiles({ getKey: () => "map", getBytes });
  const at = async (longitude: number, latitude: number): Promise<boolean> => {
    const radians = (latitude * Math.PI) / 180;
    const pixels = 2 ** 5 * 256;
    const x = Math.floor((longitude / 360 + 0.5) * pixels);
    const y = Math.floor((0.5 - Math.log(Math.tan(Math.PI / 4 + radians / 2)) / (2 * Math.PI)) * pixels);
    const tile = await map.getZxy(5, Math.floor(x / 256), Math.floor(y / 256));
    return isLand(new Uint8Array(tile!.data), x % 256, y % 256);
  };
  const places: [number, number, boolean][] = [
    [10, 50, true],
    [-30, 40, false],
    [134, -25, true],
    [-100, 40, true],
    [178, 67, true],
    [-176, 67, true],
    [100, 69, true],
    [-150, 0, false],
    [0, -80, true],
    [0, 85, false],
  ];
  for (const [longitude, latitude, land] of places) {
    expect([longitude, latitude, await at(longitude, latitude)]).toEqual([longitude, latitude, land]);
  }
  await file.close();
});

test("each picture of the page is a PNG that is too large to travel inside a manifest", async () => {
  for (const i of PICTURES.keys()) {
    const picture = await readFile(join(folder, `${i}.png`));
    expect(picture.subarray(1, 4).toString()).toBe("PNG");
    expect(picture.length).toBeGreaterThan(16 * 1024);
  }
});

test("the table has 40 stations with 8,760 hours each", async () => {
  const path = join(folder, "table");
  await writeTable(path);
  const { buffer } = new Uint8Array(await readFile(path));
  const rows = await parquetReadObjects({ file: buffer, columns: ["station", "hour"] });
  expect(rows).toHaveLength(40 * 8760);
  expect(rows[8760 + 5]).toEqual({ station: 1, hour: 5 });
});
