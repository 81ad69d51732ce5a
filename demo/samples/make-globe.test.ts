import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { COLUMNS, ROWS, writeGlobe } from "./make-globe.ts";

test("the globe has land and sea where they are, on both sides of the date line", async () => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-globe-"));
  const path = join(folder, "globe.glb");
  await writeGlobe(path);
  const file = await readFile(path);
  await rm(folder, { recursive: true });
  expect(file.readUInt32LE(8)).toBe(file.length);
  const json = file.readUInt32LE(12);
  const { bufferViews } = JSON.parse(file.toString("utf8", 20, 20 + json)) as { bufferViews: { byteOffset: number }[] };
  const colours = 20 + json + 8 + bufferViews[1]!.byteOffset;
  const redOf = (longitude: number, latitude: number): number => {
    const column = Math.round(((longitude + 180) / 360) * (COLUMNS - 1));
    const row = Math.round(((90 - latitude) / 180) * (ROWS - 1));
    return file[colours + 4 * (row * COLUMNS + column)]!;
  };
  const places: Readonly<Record<string, readonly [number, number]>> = { congo: [20, 0], pacific: [-140, 0], brazil: [-55, -10], chukotka: [-175, 66.5], gulf: [0, 0] };
  const land = Object.entries(places).filter(([, place]) => redOf(...place) > 20);
  expect(land.map(([name]) => name)).toEqual(["congo", "brazil", "chukotka"]);
});
