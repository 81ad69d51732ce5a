/**
 * `geotiff` reads rasters by ranges, as it is, in a page under the service worker. The nearest region and the nearest
 * PoP die while it reads.
 */
import { writeArrayBuffer } from "geotiff";
import type * as geotiff from "geotiff";
import { NEAR } from "../cases/faults.ts";
import { nearestPop, openControlledApp } from "../fixtures/app.ts";
import { addLibrary } from "../fixtures/library.ts";
import { expect, test } from "../fixtures/test.ts";

const SIDE = 1_500;

/** The library, as a global of the page. */
declare const library: typeof geotiff;

test("geotiff reads windows of a raster while a region and a PoP die", async ({ context, world }) => {
  const pixels = Uint8Array.from({ length: SIDE * SIDE }, (_, i) => (i * 31 + Math.floor(i / SIDE) * 7) % 251);
  const file = writeArrayBuffer(pixels, { width: SIDE, height: SIDE });
  await world.put("rasters/heights.tif", new Uint8Array(file as ArrayBuffer));
  const page = await openControlledApp(context, world);
  await addLibrary(page, 'export * from "geotiff";');
  const windowAt = (x: number, y: number): Promise<number[]> =>
    page.evaluate(
      async ([left, top]) => {
        const raster = await library.fromUrl("/ec/rasters/heights.tif", { allowFullFile: false });
        const image = await raster.getImage();
        const [band] = (await image.readRasters({
          window: [left, top, left + 20, top + 1],
        })) as unknown as Uint8Array[];
        return Array.from(band!);
      },
      [x, y] as const,
    );
  const expectedAt = (x: number, y: number): number[] => Array.from(pixels.subarray(y * SIDE + x, y * SIDE + x + 20));
  expect(await windowAt(100, 200)).toEqual(expectedAt(100, 200));
  const pop = world.pop(await nearestPop(page, world));
  await world.region(NEAR).down();
  await pop.down();
  // Read again from its sources, because memory holds what was read.
  await page.evaluate(() =>
    navigator.serviceWorker.controller!.postMessage({ agarose: "purge", keys: ["rasters/heights.tif"] }),
  );
  expect(await windowAt(1_200, 1_400)).toEqual(expectedAt(1_200, 1_400));
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  expect(await pop.fired()).toBeGreaterThan(0);
});
