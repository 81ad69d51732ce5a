/** A worker that runs while its app's configuration changes: it is never stopped here. */
import type { BrowserContext, Page } from "@playwright/test";
import type { LocalWorld } from "@agarose/dev-world/client";
import { read, sha256 } from "../fixtures/app.ts";
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";

const OTHER_KEY = `ed25519:${Buffer.alloc(32, 7).toString("base64")}`;

/** The configuration that the app serves, which tests change, and the number of requests for it. */
interface Served {
  body: string;
  contentType: string;
  asked: number;
}

interface Config {
  readonly publicKeys: readonly string[];
  readonly regions: readonly { readonly name: string; readonly url: string }[];
}

/** Serves the world's configuration with changes. */
async function serveConfig(context: BrowserContext, world: LocalWorld, changes: object): Promise<[Served, Config]> {
  const own = (await (await fetch(`${world.app}agarose.json`)).json()) as Config;
  const served = { body: JSON.stringify({ ...own, ...changes }), contentType: "application/json", asked: 0 };
  await context.route(`${world.app}agarose.json`, (route) => {
    served.asked++;
    return route.fulfill({ body: served.body, contentType: served.contentType });
  });
  return [served, own];
}

/** Opens the app, by the configuration that is served. */
async function openApp(context: BrowserContext, world: LocalWorld, served: Served): Promise<Page> {
  const { body, contentType } = served;
  const page = await openInitialisedApp(context, world);
  // The fixture's own route would answer from now on.
  await context.route(`${world.app}agarose.json`, (route) => {
    served.asked++;
    return route.fulfill({ body: served.body, contentType: served.contentType });
  });
  Object.assign(served, { body, contentType });
  await register(page);
  return page;
}

async function register(page: Page): Promise<void> {
  await page.evaluate(async () => {
    const { register: registered } = (globalThis as unknown as InPage).agarose;
    await registered({ scope: "/" });
  });
}

test("after a rotation of keys a running worker reads what the new key has signed, within seconds", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("live/rotated", 200_000);
  const [served, own] = await serveConfig(context, world, { publicKeys: [OTHER_KEY] });
  const page = await openApp(context, world, served);
  const refused = await read(page, "live/rotated");
  expect([refused.status, refused.headers["x-agarose-error"]]).toEqual([502, "MANIFEST_UNTRUSTED"]);
  served.body = JSON.stringify({ ...own, publicKeys: [OTHER_KEY, ...own.publicKeys] });
  await expect.poll(async () => (await read(page, "live/rotated")).status, { timeout: 20_000 }).toBe(200);
  expect((await read(page, "live/rotated")).sha256).toBe(sha256(content));
  expect(served.asked).toBeLessThan(12);
});

test("after a revocation register() makes a running worker refuse what the old key has signed", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("live/revoked", 200_000);
  const [served, own] = await serveConfig(context, world, {});
  const page = await openApp(context, world, served);
  expect((await read(page, "live/revoked")).status).toBe(200);
  served.body = JSON.stringify({ ...own, publicKeys: [OTHER_KEY] });
  await page.waitForTimeout(1_100);
  await register(page);
  await expect
    .poll(async () => (await read(page, "live/revoked")).headers["x-agarose-error"], { timeout: 20_000 })
    .toBe("MANIFEST_UNTRUSTED");
});

test("a region that has moved is found, and HTML in place of the configuration changes nothing", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("live/moved", 200_000);
  const away = { pops: [] as object[] };
  const own = (await (await fetch(`${world.app}agarose.json`)).json()) as Config;
  const regions = own.regions.map(({ name, url }) => ({ name, url: url.replace(/\/[^/]*$/, "/moved-away") }));
  const [served] = await serveConfig(context, world, { ...away, regions });
  const page = await openApp(context, world, served);
  expect((await read(page, "live/moved")).status).toBeGreaterThanOrEqual(400);
  Object.assign(served, { body: "<html>a single-page app</html>", contentType: "text/html" });
  await page.waitForTimeout(1_100);
  const asked = served.asked;
  expect((await read(page, "live/moved")).status).toBeGreaterThanOrEqual(400);
  expect(served.asked, "it was asked for again").toBeGreaterThan(asked);
  Object.assign(served, { body: JSON.stringify({ ...own, ...away }), contentType: "application/json" });
  await expect.poll(async () => (await read(page, "live/moved")).status, { timeout: 20_000 }).toBe(200);
  expect((await read(page, "live/moved")).sha256).toBe(sha256(content));
});
