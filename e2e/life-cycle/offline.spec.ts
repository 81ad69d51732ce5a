/** The worker that keeps what was read: without a network, with a full storage, after a purge and a hard reload. */
import type { BrowserContext, Page } from "@playwright/test";
import { read, sha256 } from "../fixtures/app.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

const BYTES = 6_000_000;

/** Opens an app with the worker that keeps what was read. */
async function openOfflineApp(context: BrowserContext, world: LocalWorld, bytes = 50_000_000): Promise<Page> {
  const page = await openInitialisedApp(context, world, { offline: { bytes } });
  await page.evaluate(async () => {
    const { register } = (globalThis as unknown as InPage).agarose;
    const handle = await register({ worker: "/agarose-sw.offline.js", scope: "/" });
    Object.assign(globalThis, { handle });
  });
  return page;
}

/** Bytes of stripes in Cache Storage. */
function keptBytes(page: Page): Promise<number> {
  return page.evaluate(async () => {
    const cache = await caches.open("agarose-offline");
    const stripes = (await cache.keys()).filter(({ url }) => url.includes("/stripes/"));
    const sizes = stripes.map(async (request) => (await (await cache.match(request))!.arrayBuffer()).byteLength);
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  });
}

/** Takes PoPs and buckets away. The app's own files stay: what they do offline is the app's affair. */
async function unplug(world: LocalWorld): Promise<void> {
  for (const { name } of world.regions) await world.region(name).down();
  for (const { name } of world.pops) await world.pop(name).down();
}

/** Makes the worker's knowledge of `key` expire. */
async function forgetPlan(page: Page, key: string): Promise<void> {
  await page.evaluate((keys) => (globalThis as unknown as InPage).handle.update(keys), [key]);
}

test("what was read is read again when neither PoP nor bucket answers, and what was not is an error", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("offline/read", BYTES);
  await putRandom("offline/unread", 100_000);
  const page = await openOfflineApp(context, world);
  expect(await read(page, "offline/read")).toMatchObject({ status: 200, sha256: sha256(content) });
  await expect.poll(() => keptBytes(page)).toBeGreaterThanOrEqual(BYTES);
  await unplug(world);
  await forgetPlan(page, "offline/read");
  const again = await read(page, "offline/read");
  expect(again).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(again.headers["x-agarose-read"]).toBe("stored");
  expect(await read(page, "offline/read", { range: "bytes=4200000-4200099" })).toMatchObject({
    status: 206,
    sha256: sha256(content.subarray(4_200_000, 4_200_100)),
  });
  expect((await read(page, "offline/unread")).status).toBeGreaterThanOrEqual(500);
});

test("without its network a browser shows what was read, in a page that was loaded past its worker too", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("offline/reload", BYTES);
  const page = await openOfflineApp(context, world);
  await read(page, "offline/reload");
  await expect.poll(() => keptBytes(page)).toBeGreaterThanOrEqual(BYTES);
  // A hard reload: the page is without its worker until that claims it.
  const session = await context.newCDPSession(page);
  const loaded = page.waitForEvent("load");
  await session.send("Page.reload", { ignoreCache: true });
  await loaded;
  expect(await page.evaluate(() => navigator.serviceWorker.controller)).toBeNull();
  await page.evaluate(async () => {
    const agarose = (await import("/agarose.js" as string)) as InPage["agarose"];
    const handle = await agarose.register({ worker: "/agarose-sw.offline.js", scope: "/" });
    Object.assign(globalThis, { agarose, handle });
  });
  await context.setOffline(true);
  await forgetPlan(page, "offline/reload");
  const answer = await read(page, "offline/reload");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(answer.headers["x-agarose-read"]).toBe("stored");
  // The first steps of every page work too, though the configuration is missing. (The test's own file
  // would.)
  await context.route(`${world.app}agarose.json`, (route) => route.abort());
  const again = await page.evaluate(async () => {
    const { register } = (globalThis as unknown as InPage).agarose;
    const refused = await fetch("/agarose.json").then(
      () => "answered",
      () => "refused",
    );
    const reported: unknown[] = [];
    const onStale = (problem: unknown): void => void reported.push(problem);
    const handle = await register({ worker: "/agarose-sw.offline.js", scope: "/", onStale });
    const { byteLength } = await (await handle.fetch("offline/reload")).arrayBuffer();
    return { refused, reported, byteLength };
  });
  expect(again).toEqual({ refused: "refused", reported: [], byteLength: BYTES });
  await context.setOffline(false);
});

test("a storage without room fails no read, and its bound is kept", async ({ context, world, putRandom }) => {
  const content = await putRandom("offline/full", BYTES);
  const page = await openOfflineApp(context, world, 5_000_000);
  const session = await context.newCDPSession(page);
  expect(await read(page, "offline/full")).toMatchObject({ status: 200, sha256: sha256(content) });
  await expect.poll(() => keptBytes(page)).toBeGreaterThan(0);
  expect(await keptBytes(page)).toBeLessThanOrEqual(5_000_000);
  // Less than what is there: the next write is refused.
  await session.send("Storage.overrideQuotaForOrigin", { origin: new URL(world.app).origin, quotaSize: 1_000_000 });
  const refused = await page.evaluate(async () => {
    const cache = await caches.open("probe");
    return cache.put("/probe", new Response(new Uint8Array(2_000_000))).then(
      () => "written",
      (error: Error) => error.name,
    );
  });
  expect(refused, "the quota is in force").toBe("QuotaExceededError");
  const other = await putRandom("offline/other", BYTES);
  expect(await read(page, "offline/other")).toMatchObject({ status: 200, sha256: sha256(other) });
});

test("a purge drops what was kept, for the worker and for reads without a network", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("offline/purged/a", 100_000);
  const kept = await putRandom("offline/kept", 100_000);
  const page = await openOfflineApp(context, world);
  await read(page, "offline/purged/a");
  await read(page, "offline/kept");
  await expect.poll(() => keptBytes(page)).toBeGreaterThanOrEqual(200_000);
  await page.evaluate(() => (globalThis as unknown as InPage).handle.purge({ prefix: "offline/purged/" }));
  expect(await keptBytes(page)).toBeLessThan(150_000);
  await unplug(world);
  expect((await read(page, "offline/purged/a")).status).toBeGreaterThanOrEqual(500);
  expect(await read(page, "offline/kept")).toMatchObject({ status: 200, sha256: sha256(kept) });
});

test("the answer for an object that was put again has no byte of the kept old version", async ({
  context,
  world,
  putRandom,
}) => {
  const old = await putRandom("offline/changed", BYTES);
  const page = await openOfflineApp(context, world);
  await read(page, "offline/changed", { range: "bytes=0-99" });
  await expect.poll(() => keptBytes(page)).toBeGreaterThan(0);
  const changed = await putRandom("offline/changed", BYTES);
  // A PoP may name the old version for a minute; the buckets name the new one at once.
  for (const { name } of world.pops) await world.pop(name).down();
  await forgetPlan(page, "offline/changed");
  const { sha256: answered } = await read(page, "offline/changed");
  expect(answered).toBe(sha256(changed));
  expect(answered).not.toBe(sha256(old));
});

/** Ends the worker, as the browser does when it has no work. */
async function stopWorker(page: Page): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send("ServiceWorker.enable");
  await session.send("ServiceWorker.stopAllWorkers");
}

test("what is read with a token while no PoP answers is private, is not kept, and is for no other reader", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("offline/secret", 100_000);
  const page = await openOfflineApp(context, world);
  for (const { name } of world.pops) await world.pop(name).down();
  const answer = await read(page, "offline/secret", { authorization: "Bearer token" });
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(answer.headers["cache-control"]).toBe("private, no-cache");
  await unplug(world);
  expect((await read(page, "offline/secret")).status).toBeGreaterThanOrEqual(500);
  expect(await keptBytes(page)).toBe(0);
});

test("a kept plan that was damaged is dropped, fetched and kept again", async ({ context, world, putRandom }) => {
  const content = await putRandom("offline/damaged", 100_000);
  const page = await openOfflineApp(context, world);
  await read(page, "offline/damaged");
  await expect.poll(() => keptBytes(page)).toBeGreaterThan(0);
  const damaged = await page.evaluate(async () => {
    const cache = await caches.open("agarose-offline");
    const plans = (await cache.keys()).filter(({ url }) => url.includes("/plans/"));
    for (const plan of plans) await cache.put(plan, new Response("{garbage"));
    return plans.length;
  });
  expect(damaged).toBe(1);
  await stopWorker(page);
  expect(await read(page, "offline/damaged")).toMatchObject({ status: 200, sha256: sha256(content) });
  await expect.poll(() => keptBytes(page)).toBeGreaterThan(0);
  await stopWorker(page);
  await unplug(world);
  const again = await read(page, "offline/damaged");
  expect(again).toMatchObject({ status: 200, sha256: sha256(content) });
  expect(again.headers["x-agarose-read"]).toBe("stored");
});

test("register says when the configuration asks the other file for offline reads", async ({ context, world }) => {
  const page = await openInitialisedApp(context, world, { offline: { bytes: 1_000_000 } });
  const code = await page.evaluate(async () => {
    const { register } = (globalThis as unknown as InPage).agarose;
    const registered = register({ scope: "/" });
    return registered.then(
      () => "registered",
      (error: { code: string; details: object }) => ({ code: error.code, details: error.details }),
    );
  });
  expect(code).toMatchObject({ code: "CONFIG_INVALID", details: { field: "offline" } });
});
