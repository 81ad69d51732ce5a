/**
 * `transformers.js`, as it is, loads a model that reads lines of text. In the middle of the load a region dies, and so
 * does the tab with its worker. After a reload the load continues from what is kept, with another PoP.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LocalWorld } from "@agarose/dev-world/client";
import type { BrowserContext, Page } from "@playwright/test";
import { textReader, type TextReader } from "./text-reader.ts";
import { NEAR } from "../cases/faults.ts";
import { nearestPop, read, sha256 } from "../fixtures/app.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test as base } from "../fixtures/test.ts";

/** A megabit per second of a transfer: a stripe of the model takes four seconds, so a load has a middle. */
const test = base.extend({ worldOptions: [{ world: "agar", scale: 0.02, mbit: 1 }, { scope: "worker" }] });

const MODEL = "models/ppocr/onnx/model.onnx";
/** The length of its shards in all stripes but the last: those of 4 MiB in nine data chunks. */
const SHARD_BYTES = Math.ceil((4 * 1024 * 1024) / 9);

const RECIPE = fileURLToPath(new URL("../recipes/transformers/load-model.js", import.meta.url));
const IMPORTS = { "@huggingface/transformers": "/library/transformers.min.js", "@agarose/sw": "/agarose.js" };

/** The little that the test uses of the library and of the model. */
interface Transformers {
  Tensor: new (type: string, data: Float32Array, shape: number[]) => object;
}
interface Recipe {
  model: (inputs: object) => Promise<Record<string, { dims: readonly number[] }>>;
}

/** Opens an app that has the library, and a worker that keeps what was read. */
async function openAppWithLibrary(
  context: BrowserContext,
  world: LocalWorld,
  { scripts, runtime }: TextReader,
): Promise<Page> {
  await context.route("**/library/*", (route, request) => {
    const file = new URL(request.url()).pathname.split("/").at(-1)!;
    return route.fulfill({ path: join(file.startsWith("ort") ? runtime : scripts, file) });
  });
  await context.route("**/recipe.js", (route) => route.fulfill({ path: RECIPE }));
  const page = await openInitialisedApp(context, world, { offline: { bytes: 50_000_000 } });
  await page.addScriptTag({ type: "importmap", content: JSON.stringify({ imports: IMPORTS }) });
  await page.evaluate(async () => {
    const { agarose } = globalThis as unknown as InPage;
    await agarose.register({ worker: "/agarose-sw.offline.js", scope: "/" });
  });
  return page;
}

/** Loads the model and reads an empty line with it. Resolves to the shape of the output: places and characters. */
function loadModel(page: Page): Promise<readonly number[]> {
  return page.evaluate(async () => {
    const load = <T>(url: string): Promise<T> => import(url) as Promise<T>;
    const { model } = await load<Recipe>("/recipe.js");
    const { Tensor } = await load<Transformers>("@huggingface/transformers");
    const outputs = await model({ x: new Tensor("float32", new Float32Array(3 * 48 * 320), [1, 3, 48, 320]) });
    return [...Object.values(outputs)[0]!.dims];
  });
}

/** Numbers of the model's stripes in Cache Storage. */
function keptStripes(page: Page): Promise<number[]> {
  return page.evaluate(async () => {
    const cache = await caches.open("agarose-offline");
    const urls = (await cache.keys()).map(({ url }) => url);
    const own = urls.filter((url) => url.includes("/stripes/") && url.includes("model.onnx"));
    return own.map((url) => Number(url.split("/").at(-1))).toSorted();
  });
}

test("transformers.js continues from what is kept after a region and the tab died in the middle", async ({
  context,
  world,
}) => {
  const reader = await textReader();
  test.skip("missing" in reader, "missing" in reader ? reader.missing : "");
  if ("missing" in reader) return;
  const content = await readFile(reader.model);
  await world.put(MODEL, content);
  await world.put("models/ppocr/config.json", Buffer.from('{ "model_type": "custom" }'));

  const page = await openAppWithLibrary(context, world, reader);
  const ended = loadModel(page).then(
    () => "loaded",
    () => "died",
  );
  await expect.poll(() => keptStripes(page), { intervals: [50] }).not.toEqual([]);
  const kept = await keptStripes(page);
  expect(kept).toEqual(kept.map((_, i) => i));
  await world.region(NEAR).down();
  const session = await context.newCDPSession(page);
  void session.send("Page.crash").catch(() => {});
  expect(await ended).toBe("died");
  await page.close();

  await world.reset();
  const again = await openAppWithLibrary(context, world, reader);
  const pop = world.pop(await nearestPop(again, world));
  await world.region(NEAR).down();
  await pop.down();
  expect(await loadModel(again)).toEqual([1, 40, 6625]);
  expect((await read(again, MODEL)).sha256).toBe(sha256(content));
  expect(await world.region(NEAR).fired()).toBeGreaterThan(0);
  expect(await pop.fired()).toBeGreaterThan(0);

  const log = (await world.log()).filter(({ from, path }) => from === "client" && path.includes("model.onnx"));
  const starts = log
    .filter(({ path }) => path.includes("/chunks/"))
    .map(({ range }) => Number(/\d+/.exec(range ?? "0")));
  expect(Math.min(...starts), "what was kept is not asked for").toBeGreaterThanOrEqual(kept.length * SHARD_BYTES);
  const bytes = log.reduce((sum, record) => sum + record.bytes, 0);
  expect(bytes, "a fresh load takes all bytes at least").toBeLessThan(content.length);
});
