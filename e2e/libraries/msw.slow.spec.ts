/** Mock Service Worker, as it is, beside Agarose in one worker. */
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { NEAR } from "../cases/faults.ts";
import { read, sha256 } from "../fixtures/app.ts";
import { startOriginHost } from "../fixtures/origin-host.ts";
import { expect, test } from "../fixtures/test.ts";

const recipe = (name: string): string => fileURLToPath(new URL(`../recipes/msw/${name}`, import.meta.url));
const MOCK_WORKER = createRequire(import.meta.url).resolve("msw/mockServiceWorker.js");

test("an app has its mocks, and reads objects while a region is down", async ({ context, world, putRandom }) => {
  const content = await putRandom("msw/object", 5_000_000);
  const define = { CONFIG: await (await fetch(`${world.app}agarose.json`)).text() };
  const bundled = async (name: string, format: "esm" | "iife") => {
    const { outputFiles } = await build({
      entryPoints: [recipe(name)],
      bundle: true,
      format,
      write: false,
      define,
    });
    return { contentType: "text/javascript", body: outputFiles[0]!.text };
  };
  const host = await startOriginHost(
    world.app,
    {},
    {
      "/worker.js": await bundled("worker.js", "iife"),
      "/start-mocks.js": await bundled("start-mocks.js", "esm"),
      "/mockServiceWorker.js": { contentType: "text/javascript", body: await readFile(MOCK_WORKER, "utf8") },
    },
  );
  try {
    const page = await context.newPage();
    await page.goto(host.url);
    await page.evaluate((url) => import(url) as Promise<unknown>, "/start-mocks.js");
    await world.region(NEAR).down();
    // The others answer later, so that its failure is known when the head of the answer is sent.
    for (const { name } of world.regions) if (name !== NEAR) await world.region(name).slow(10);
    const answer = await read(page, "msw/object");
    expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
    expect(answer.headers["x-agarose-read"]).toBe("degraded");
    const mocked = await page.evaluate(async (path) => (await fetch(path)).json() as Promise<unknown>, "/api/plan");
    expect(mocked).toEqual({ plan: "free" });
    expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  } finally {
    await host.close();
  }
});
