/** A page that is cross-origin isolated, as libraries with threads of WebAssembly need it. */
import { NEAR } from "../cases/faults.ts";
import { read, sha256, takeServiceWorker } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { startAppHost } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const ISOLATING = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

test("a cross-origin isolated page fetches objects and shows images while a region is down", async ({
  context,
  putRandom,
  world,
}) => {
  const content = await putRandom("isolated/model.bin", 5_000_000);
  await world.put("isolated/noise.bmp", bitmap(300, 200));
  const host = await startAppHost(world.app, ISOLATING);
  try {
    const page = await context.newPage();
    await page.goto(host.url);
    await takeServiceWorker(page);
    await world.region(NEAR).down();
    expect(await read(page, "isolated/model.bin")).toMatchObject({ status: 200, sha256: sha256(content) });
    const seen = await page.evaluate(async () => {
      const image = new Image();
      image.src = "/ec/isolated/noise.bmp";
      await image.decode();
      const memory = new SharedArrayBuffer(1);
      return { crossOriginIsolated, width: image.naturalWidth, shared: memory.byteLength };
    });
    expect(seen).toEqual({ crossOriginIsolated: true, width: 300, shared: 1 });
    expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  } finally {
    await host.close();
  }
});
