/** A page that is cross-origin isolated, as libraries with threads of WebAssembly need it. */
import { NEAR } from "../cases/faults.ts";
import { read, sha256, takeServiceWorker } from "../fixtures/app.ts";
import { bitmap } from "../fixtures/bitmap.ts";
import { startOriginHost } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const ISOLATING = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-embedder-policy": "require-corp",
};

const POLICY = { headers: { "cross-origin-embedder-policy": "require-corp" } };

/** Runs in the page: starts all that has to have the policy itself, and what needs none. */
async function startAll(): Promise<Record<string, string>> {
  const shared = new SharedArrayBuffer(1);
  const start = (name: string, options?: WorkerOptions): Promise<string> =>
    new Promise((resolve) => {
      const worker = new Worker(`/ec/isolated/${name}.js`, options);
      worker.addEventListener("message", ({ data }) => resolve(String(data)));
      worker.addEventListener("error", () => resolve("refused"));
      worker.postMessage(shared);
    });
  const startShared = (): Promise<string> =>
    new Promise((resolve) => {
      const worker = new SharedWorker("/ec/isolated/shared.js");
      worker.port.addEventListener("message", ({ data }) => resolve(String(data)));
      worker.addEventListener("error", () => resolve("refused"));
      worker.port.start();
    });
  const element = (tag: "script" | "img" | "iframe", url: string): Promise<string> =>
    new Promise((resolve) => {
      const added = document.createElement(tag);
      added.addEventListener("load", () => resolve("loaded"));
      added.addEventListener("error", () => resolve("refused"));
      added.src = url;
      document.body.append(added);
    });
  await element("script", "/ec/isolated/script.js");
  return {
    classic: await start("worker"),
    module: await start("worker", { type: "module" }),
    shared: await startShared(),
    script: String((globalThis as { scriptHas?: string }).scriptHas),
    frame: await element("iframe", "/ec/isolated/frame.html"),
    "without the policy": await start("bare"),
    "image of the PoP": await element("img", `${(globalThis as { popUrl?: string }).popUrl}/o/isolated/noise.bmp`),
  };
}

test("a cross-origin isolated page fetches objects and shows images while a region is down", async ({
  context,
  putRandom,
  world,
}) => {
  const content = await putRandom("isolated/model.bin", 5_000_000);
  await world.put("isolated/noise.bmp", bitmap(300, 200));
  const worker = "addEventListener('message', ({ data }) => postMessage(`shares ${data.byteLength} byte`));";
  for (const [name, text, options] of [
    ["worker.js", worker, POLICY],
    ["shared.js", "addEventListener('connect', ({ ports }) => ports[0].postMessage('runs'));", POLICY],
    ["bare.js", worker, {}],
    ["script.js", "scriptHas = 'ran';", {}],
    ["frame.html", "<!doctype html><title>A frame</title>", POLICY],
  ] as const) {
    await world.put(`isolated/${name}`, Buffer.from(text), options);
  }
  const host = await startOriginHost(world.app, ISOLATING);
  try {
    const page = await context.newPage();
    await page.goto(host.url);
    await takeServiceWorker(page);
    await world.region(NEAR).down();
    expect(await read(page, "isolated/model.bin")).toMatchObject({ status: 200, sha256: sha256(content) });
    await page.evaluate((popUrl) => void Object.assign(globalThis, { popUrl }), world.pops[0]!.url);
    const seen = await page.evaluate(async () => {
      const image = new Image();
      image.src = "/ec/isolated/noise.bmp";
      await image.decode();
      const memory = new SharedArrayBuffer(1);
      return { crossOriginIsolated, width: image.naturalWidth, shared: memory.byteLength };
    });
    expect(seen).toEqual({ crossOriginIsolated: true, width: 300, shared: 1 });
    expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
    expect(await page.evaluate(startAll)).toEqual({
      classic: "shares 1 byte",
      module: "shares 1 byte",
      shared: "runs",
      script: "ran",
      frame: "loaded",
      "without the policy": "refused",
      "image of the PoP": "loaded",
    });
  } finally {
    await host.close();
  }
});
