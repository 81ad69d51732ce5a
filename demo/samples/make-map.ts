/**
 * Writes the map sample: the land of the earth as pictures of 256 x 256 pixels, zoom levels 0 to 5, in one PMTiles
 * file. A seeded grain gives each picture some kilobytes, as photographs from the air have them. The same bytes come
 * out on every machine.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { tileIdToZxy, zxyToTileId } from "pmtiles";
import { mapFile } from "@agarose/core/testing";
import { PICTURES, type Picture } from "./index.ts";

const SIDE = 256;
/** Sea and land, four shades each. */
const PALETTE = ["17425d", "18445f", "194662", "1a4864", "7b9b61", "7d9d63", "7f9f65", "81a167"];
const LAND = 4;
/** Mercator shows no more. */
const LATITUDE_MAX = 85.05;

/** A piece of coast, with Mercator's x and y from 0 to 1, y down. */
interface Coast {
  readonly x: number;
  readonly y: number;
  readonly x2: number;
  readonly y2: number;
}

/** Writes the file (10 MB), and each of `PICTURES` into `folder` under its number. */
export async function writeMap(path: string, folder: string): Promise<void> {
  const text = await readFile(new URL("land.txt", import.meta.url), "utf8");
  const coasts = text.trim().split("\n").flatMap(coastsOf);
  await writeFile(
    path,
    mapFile(zxyToTileId, (id) => picture(coasts, tileIdToZxy(id), 4)),
  );
  for (const [i, { tile }] of PICTURES.entries()) await writeFile(join(folder, `${i}.png`), picture(coasts, tile, 1));
}

/** A line of `land.txt` is a closed coast, in degrees of longitude and latitude. */
function coastsOf(line: string): Coast[] {
  const points = line.split(" ").map((pair) => {
    const [longitude = 0, latitude = 0] = pair.split(",").map(Number);
    const limited = Math.max(-LATITUDE_MAX, Math.min(LATITUDE_MAX, latitude)) * (Math.PI / 180);
    return { x: longitude / 360 + 0.5, y: 0.5 - Math.log(Math.tan(Math.PI / 4 + limited / 2)) / (2 * Math.PI) };
  });
  return points.map((point, i) => {
    const { x, y } = points[(i + 1) % points.length]!;
    return { ...point, x2: x, y2: y };
  });
}

/** @param side of a grain in pixels. */
function picture(coasts: readonly Coast[], [z, column, row]: Picture["tile"], side: number): Uint8Array {
  const scale = SIDE * 2 ** z;
  // Where each line of pixels crosses a coast: every second crossing leaves the land.
  const crossings = Array.from({ length: SIDE }, (): number[] => []);
  for (const { x, y, x2, y2 } of coasts) {
    const lineOf = (at: number): number => Math.ceil(at * scale - row * SIDE - 0.5);
    const end = Math.min(SIDE, lineOf(Math.max(y, y2)));
    for (let line = Math.max(0, lineOf(Math.min(y, y2))); line < end; line++) {
      const at = (line + row * SIDE + 0.5) / scale;
      const crossing = (x + ((at - y) / (y2 - y)) * (x2 - x)) * scale - column * SIDE;
      // Land that crosses the date line is drawn from both sides.
      crossings[line]!.push(crossing - scale, crossing, crossing + scale);
    }
  }
  const pixels = new Uint8Array(SIDE * (SIDE + 1));
  let shades: number[] = [];
  for (const [line, along] of crossings.entries()) {
    along.sort((a, b) => a - b);
    if (line % side === 0)
      shades = Array.from({ length: SIDE / side }, (_, x) => grain(column * SIDE + side * x, row * SIDE + line));
    let passed = 0;
    for (let x = 0; x < SIDE; x++) {
      while (passed < along.length && along[passed]! <= x + 0.5) passed++;
      // Each line begins with its filter: none.
      pixels[line * (SIDE + 1) + 1 + x] = (passed % 2) * LAND + shades[Math.floor(x / side)]!;
    }
  }
  return png(pixels);
}

/** 0 to 3, seeded by the place. */
function grain(x: number, y: number): number {
  const mixed = Math.imul(x + 1, 0x9e3779b1) ^ Math.imul(y + 1, 0x85ebca6b);
  return (Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 13) & 3;
}

/** A PNG of palette indices (https://www.w3.org/TR/png-3/). */
function png(lines: Uint8Array): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(SIDE, 0);
  header.writeUInt32BE(SIDE, 4);
  // Eight bits, a palette, and the only methods of compression, filtering and order.
  header.set([8, 3, 0, 0, 0], 8);
  const parts = [
    Buffer.from("89504e470d0a1a0a", "hex"),
    part("IHDR", header),
    part("PLTE", Buffer.from(PALETTE.join(""), "hex")),
    part("IDAT", deflateSync(lines, { level: 1 })),
    part("IEND", Buffer.alloc(0)),
  ];
  return Buffer.concat(parts);
}

function part(type: string, data: Uint8Array): Buffer {
  const named = Buffer.concat([Buffer.from(type), data]);
  const framed = Buffer.alloc(8 + named.length);
  framed.writeUInt32BE(data.length, 0);
  framed.set(named, 4);
  framed.writeUInt32BE(crc32(named), 4 + named.length);
  return framed;
}
