/**
 * Writes the scene sample: the land of the earth as a globe in three dimensions, in one binary glTF file. A seeded
 * height raises the land. The same bytes come out on every machine.
 *
 * Format (glTF 2.0, https://registry.khronos.org/glTF/specs/2.0/glTF-2.0.html): a header of 12 bytes, a part of JSON,
 * and a part with positions, colours and triangles.
 */
import { readFile, writeFile } from "node:fs/promises";

/** Points around the globe, and from pole to pole. */
export const [COLUMNS, ROWS] = [600, 300] as const;

const GLTF = { magic: 0x46546c67, version: 2, json: 0x4e4f534a, binary: 0x004e4942 };
const FLOAT = 5126;
const BYTE = 5121;
const WORD = 5125;
/** In linear light, as glTF has colours of points. */
const SEA = [3, 17, 34];
const LAND = [54, 86, 31];
/** Of the globe's radius. */
const LAND_HEIGHT = 0.012;
const HILL_HEIGHT = 0.018;

/** Longitude and latitude in degrees. */
type Place = readonly [longitude: number, latitude: number];

/** Writes the file (7 MB). */
export async function writeGlobe(path: string): Promise<void> {
  const text = await readFile(new URL("land.txt", import.meta.url), "utf8");
  const coasts = text
    .trim()
    .split("\n")
    .map((line) => line.split(" ").map((pair) => pair.split(",").map(Number) as unknown as Place));
  await writeFile(path, glb(pointsOf(coasts), triangles()));
}

/** Positions and colours of a grid, whose first and last columns are the same meridian. */
function pointsOf(coasts: readonly (readonly Place[])[]): { positions: Float32Array; colours: Uint8Array } {
  const positions = new Float32Array(3 * COLUMNS * ROWS);
  const colours = new Uint8Array(4 * COLUMNS * ROWS);
  for (let row = 0; row < ROWS; row++) {
    const latitude = 90 - (180 * row) / (ROWS - 1);
    const along = crossings(coasts, latitude);
    for (let column = 0; column < COLUMNS; column++) {
      const longitude = (360 * column) / (COLUMNS - 1) - 180;
      const isLand = along.filter((crossing) => crossing <= longitude).length % 2 === 1;
      const radius = 1 + (isLand ? LAND_HEIGHT + HILL_HEIGHT * hill(column % (COLUMNS - 1), row) : 0);
      const [up, east] = [(latitude * Math.PI) / 180, (longitude * Math.PI) / 180];
      const at = row * COLUMNS + column;
      const place = [Math.cos(up) * Math.sin(east), Math.sin(up), Math.cos(up) * Math.cos(east)];
      positions.set(
        place.map((value) => radius * value),
        3 * at,
      );
      colours.set([...(isLand ? LAND : SEA), 255], 4 * at);
    }
  }
  return { positions, colours };
}

/** Longitudes at which a parallel crosses a coast: every second crossing leaves the land. */
function crossings(coasts: readonly (readonly Place[])[], latitude: number): number[] {
  return coasts.flatMap((coast) =>
    coast.flatMap(([x, y], i): number[] => {
      const [x2, y2] = coast[(i + 1) % coast.length]!;
      if (y > latitude === y2 > latitude) return [];
      const crossing = x + ((latitude - y) / (y2 - y)) * (x2 - x);
      // Land that crosses the date line is there from both sides.
      return [crossing - 360, crossing, crossing + 360];
    }),
  );
}

/** 0 to 1, seeded by the place. */
function hill(column: number, row: number): number {
  const mixed = Math.imul(column + 1, 0x9e3779b1) ^ Math.imul(row + 1, 0x85ebca6b);
  return ((Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d) >>> 13) & 255) / 255;
}

/** Two for each cell of the grid, with their corners counter-clockwise as seen from outside. */
function triangles(): Uint32Array {
  const corners: number[] = [];
  for (let row = 0; row + 1 < ROWS; row++) {
    for (let column = 0; column + 1 < COLUMNS; column++) {
      const [here, below] = [row * COLUMNS + column, (row + 1) * COLUMNS + column];
      corners.push(here, below, here + 1, here + 1, below, below + 1);
    }
  }
  return Uint32Array.from(corners);
}

function glb({ positions, colours }: ReturnType<typeof pointsOf>, corners: Uint32Array): Buffer {
  const parts = [positions, colours, corners].map(({ buffer }) => Buffer.from(buffer));
  let byteOffset = 0;
  const bufferViews = parts.map(({ byteLength }) => {
    const view = { buffer: 0, byteOffset, byteLength };
    byteOffset += byteLength;
    return view;
  });
  const count = positions.length / 3;
  const sorted = [0, 1, 2].map((axis) => positions.filter((_, i) => i % 3 === axis).toSorted());
  const [min, max] = [sorted.map((values) => values[0]), sorted.map((values) => values.at(-1))];
  const scene = {
    asset: { version: "2.0", generator: "agarose make-globe" },
    scene: 0,
    scenes: [{ nodes: [0] }],
    nodes: [{ mesh: 0, name: "earth" }],
    meshes: [{ primitives: [{ attributes: { POSITION: 0, COLOR_0: 1 }, indices: 2, material: 0 }] }],
    materials: [{ pbrMetallicRoughness: { metallicFactor: 0, roughnessFactor: 0.9 } }],
    accessors: [
      { bufferView: 0, componentType: FLOAT, type: "VEC3", count, min, max },
      { bufferView: 1, componentType: BYTE, type: "VEC4", count, normalized: true },
      { bufferView: 2, componentType: WORD, type: "SCALAR", count: corners.length },
    ],
    bufferViews,
    buffers: [{ byteLength: byteOffset }],
  };
  const text = JSON.stringify(scene);
  const json = part(GLTF.json, Buffer.from(text.padEnd(Math.ceil(text.length / 4) * 4)));
  const binary = part(GLTF.binary, Buffer.concat(parts));
  const bytes = 12 + json.length + binary.length;
  return Buffer.concat([words(GLTF.magic, GLTF.version, bytes), json, binary]);
}

function part(type: number, data: Buffer): Buffer {
  return Buffer.concat([words(data.length, type), data]);
}

function words(...values: readonly number[]): Buffer {
  return Buffer.from(Uint32Array.from(values).buffer);
}
