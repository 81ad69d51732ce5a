/** `three`, as it is, loads a scene in binary glTF under the service worker, while a region is down. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { COLUMNS, ROWS, writeGlobe } from "@agarose/demo/samples/make-globe.ts";
import { build } from "esbuild";
import type { Group, Mesh } from "three";
import { NEAR } from "../cases/faults.ts";
import { openControlledApp } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";

const KEY = "scenes/globe.glb";
const RECIPE = fileURLToPath(new URL("../recipes/three/load-scene.js", import.meta.url));

test("GLTFLoader of three loads a scene of two stripes while a region is down", async ({ context, world }) => {
  const folder = await mkdtemp(join(tmpdir(), "agarose-globe-"));
  try {
    await writeGlobe(join(folder, "globe.glb"));
    await world.put(KEY, await readFile(join(folder, "globe.glb")));
  } finally {
    await rm(folder, { recursive: true });
  }
  const { outputFiles } = await build({ entryPoints: [RECIPE], bundle: true, format: "esm", write: false });
  await context.route("**/recipe.js", (route) =>
    route.fulfill({ contentType: "text/javascript", body: outputFiles[0]!.text }),
  );
  const page = await openControlledApp(context, world);
  await world.region(NEAR).down();
  const loaded = await page.evaluate(async () => {
    const load = (url: string): Promise<{ scene: Group }> => import(url) as Promise<{ scene: Group }>;
    const { scene } = await load("/recipe.js");
    const meshes: Mesh[] = [];
    scene.traverse((object) => void ((object as Mesh).isMesh && meshes.push(object as Mesh)));
    const [{ geometry }] = meshes as [Mesh];
    geometry.computeBoundingSphere();
    const { position, color } = geometry.attributes;
    return {
      meshes: meshes.length,
      points: position!.count,
      colours: color!.count,
      corners: geometry.index!.count,
      radius: Math.round(100 * geometry.boundingSphere!.radius) / 100,
    };
  });
  const points = COLUMNS * ROWS;
  const corners = 6 * (COLUMNS - 1) * (ROWS - 1);
  expect(loaded).toEqual({ meshes: 1, points, colours: points, corners, radius: 1.04 });
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
});
