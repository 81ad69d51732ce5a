/**
 * PoPs that co-operate, over the emulated WAN: what one of them has cached is read from there by clients of another.
 */
import { randomBytes } from "node:crypto";
import type { BrowserContext, Page } from "@playwright/test";
import { expect, test } from "@agarose/dev-world/playwright";
import { openApp, read, sha256, takeServiceWorker } from "../fixtures/app.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

const KEY = "peers/a";
const CONTENT = randomBytes(900_000);

test.use({ worldOptions: { cacheBytes: 20_000_000, variables: { POLICY: "exact" } } });

/** An app whose service worker knows these PoPs, the first of them best. */
async function openAppWith(context: BrowserContext, world: LocalWorld, ...names: string[]): Promise<Page> {
  const page = await openApp(context, world);
  await takeServiceWorker(page, { pops: names, regions: [] });
  return page;
}

test("a client reads from another PoP what its own has not cached", async ({ context, browser, world }) => {
  await world.put(KEY, CONTENT);
  await world.client.near("fra");
  const inFrankfurt = await openAppWith(context, world, "fra");
  for (let i = 0; i < 3; i++) await read(inFrankfurt, KEY);
  // PoPs get to know each other in one period, and cache in the next.
  await world.cron();
  await world.cron();

  await world.client.near("lhr");
  const london = world.pops.find(({ name }) => name === "lhr")!;
  const inCaches = async (): Promise<string | null> => {
    const response = await fetch(`${london.url}/v1/read/${KEY}`);
    await response.body?.cancel();
    return response.headers.get("x-agarose-oic");
  };
  await expect.poll(inCaches).toBe("1.00");
  const other = await browser.newContext();
  const inLondon = await openAppWith(other, world, "lhr", "fra");
  const answer = await read(inLondon, KEY);
  expect(answer).toMatchObject({ status: 200, sha256: sha256(CONTENT) });
  expect(answer.headers["server-timing"]).toContain("peer-fra");
  const chunks = (await world.log()).filter(({ path }) => path.startsWith(`/v1/chunk/${KEY}`));
  expect(chunks.map(({ from, to }) => `${from} ${to}`)).toContain("client fra");

  await world.pop("fra").down();
  expect(await read(inLondon, KEY)).toMatchObject({ status: 200, sha256: sha256(CONTENT) });
  const cut = (await world.log()).filter(({ path, outcome }) => path.startsWith("/v1/chunk/") && outcome === "down");
  expect(cut.length, "the fault fired").toBeGreaterThan(0);
  await other.close();
});
