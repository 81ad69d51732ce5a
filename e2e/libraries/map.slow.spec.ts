/** `maplibre-gl`, as it is, draws a map from one file of `pmtiles` and from GeoJSON that its worker fetches. */
import { mapFile } from "@agarose/core/testing";
import type * as maplibre from "maplibre-gl";
import { zxyToTileId, type Protocol } from "pmtiles";
import { sha256 } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { fileOfPackage, showSame } from "../fixtures/same-app.ts";
import { expect, test } from "../fixtures/test.ts";

/** The library, as a global of the page. */
declare const pmtiles: { Protocol: typeof Protocol };

const TOWNS = [
  { name: "Frankfurt", at: [8.68, 50.11] },
  { name: "Dublin", at: [-6.26, 53.35] },
  { name: "Sydney", at: [151.21, -33.87] },
] as const;

test("maplibre-gl pans and zooms a map of tiles and towns", async ({ browser, page: blank, world }) => {
  const hasWebGl = await blank.evaluate(() => !!document.createElement("canvas").getContext("webgl2"));
  test.skip(!hasWebGl, "this Chromium has no WebGL 2");
  const features = TOWNS.map(({ name, at }) => ({
    type: "Feature",
    properties: { name },
    geometry: { type: "Point", coordinates: at },
  }));
  const files = {
    "map/maplibre-gl.mjs": await fileOfPackage("maplibre-gl/dist/maplibre-gl.mjs"),
    "map/maplibre-gl-worker.mjs": await fileOfPackage("maplibre-gl/dist/maplibre-gl-worker.mjs"),
    "map/pmtiles.js": await fileOfPackage("pmtiles/dist/pmtiles.js"),
    "map/world.pmtiles": mapFile(zxyToTileId, () => bitmap(32, 32)),
    "map/towns.geojson": Buffer.from(JSON.stringify({ type: "FeatureCollection", features })),
  };
  const views = await showSame(browser, world, files, async (page) => {
    await page.addScriptTag({ url: "/ec/map/pmtiles.js" });
    const seen = await page.evaluate(async () => {
      const load = (url: string): Promise<typeof maplibre> => import(url) as Promise<typeof maplibre>;
      const library = await load("/ec/map/maplibre-gl.mjs");
      library.addProtocol("pmtiles", new pmtiles.Protocol().tile);
      const container = document.createElement("div");
      container.style.cssText = "width: 500px; height: 300px";
      document.body.append(container);
      const map = new library.Map({
        container,
        attributionControl: false,
        canvasContextAttributes: { preserveDrawingBuffer: true },
        fadeDuration: 0,
        center: [8, 50],
        zoom: 3,
        style: {
          version: 8,
          sources: {
            tiles: { type: "raster", url: "pmtiles:///ec/map/world.pmtiles", tileSize: 256 },
            towns: { type: "geojson", data: "/ec/map/towns.geojson" },
          },
          layers: [
            { id: "tiles", type: "raster", source: "tiles", paint: { "raster-fade-duration": 0 } },
            { id: "towns", type: "circle", source: "towns", paint: { "circle-radius": 12 } },
          ],
        },
      });
      const view = async (): Promise<{ towns: string[]; picture: string }> => {
        await map.once("idle");
        const towns = map
          .queryRenderedFeatures({ layers: ["towns"] })
          .map(({ properties }) => String(properties["name"]));
        return { towns: towns.toSorted(), picture: map.getCanvas().toDataURL() };
      };
      const europe = await view();
      map.jumpTo({ center: [151, -34], zoom: 5 });
      return [europe, await view()];
    });
    return seen.map(({ towns, picture }) => ({ towns, picture: sha256(Buffer.from(picture)) }));
  });
  expect(views.map(({ towns }) => towns)).toEqual([["Dublin", "Frankfurt"], ["Sydney"]]);
});
