/**
 * PoPs that co-operate, over the emulated WAN: what one of them has cached is read from there by clients of another.
 */
import { randomBytes } from "node:crypto";
import type { BrowserContext, Page } from "@playwright/test";
import { expect, test } from "@agarose/dev-world/playwright";
import { openApp, read, sha256, takeServiceWorker } from "../fixtures/app.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

const KEYS = ["peers/a", "peers/b", "peers/c"];
const CONTENT = randomBytes(900_000);

/** At this scale Frankfurt's PoP is 12 ms farther from London than London's own, more than a busy machine adds. */
test.use({ worldOptions: { world: "agar", scale: 0.2, cacheBytes: 20_000_000, variables: { POLICY: "exact" } } });

/** An app whose service worker knows these PoPs, the first of them best. */
async function openAppWith(context: BrowserContext, world: LocalWorld, ...names: string[]): Promise<Page> {
  const page = await openApp(context, world);
  await takeServiceWorker(page, { pops: names, regions: [] });
  return page;
}

/** Reads each object, which must have its bytes; returns the `Server-Timing` of each. */
async function timingsOfReads(page: Page): Promise<string[]> {
  const timings: string[] = [];
  for (const key of KEYS) {
    const answer = await read(page, key);
    expect(answer).toMatchObject({ status: 200, sha256: sha256(CONTENT) });
    timings.push(answer.headers["server-timing"]!);
  }
  return timings;
}

test("a client reads from another PoP what its own has not cached", async ({ context, browser, world }) => {
  for (const key of KEYS) await world.put(key, CONTENT);
  await world.client.near("fra");
  const inFrankfurt = await openAppWith(context, world, "fra");
  for (let i = 0; i < 3; i++) await Promise.all(KEYS.map((key) => read(inFrankfurt, key)));
  // PoPs get to know each other in one period, and cache in the next.
  await world.cron();
  await world.cron();

  await world.client.near("lhr");
  const london = world.pops.find(({ name }) => name === "lhr")!;
  const inCaches = async (key: string): Promise<string | null> => {
    const response = await fetch(`${london.url}/v1/read/${key}`);
    await response.body?.cancel();
    return response.headers.get("x-agarose-oic");
  };
  for (const key of KEYS) await expect.poll(() => inCaches(key)).toBe("1.00");
  // On a busy machine a client can measure Frankfurt as nearer, or find London's plan late: another one measures again.
  let other = await browser.newContext();
  let inLondon = await openAppWith(other, world, "lhr", "fra");
  while (!(await timingsOfReads(inLondon)).some((timing) => timing.includes("peer-fra"))) {
    await other.close();
    other = await browser.newContext();
    inLondon = await openAppWith(other, world, "lhr", "fra");
  }
  const chunks = (await world.log()).filter(({ path }) => path.startsWith("/v1/chunk/peers/"));
  expect(chunks.map(({ from, to }) => `${from} ${to}`)).toContain("client fra");

  await world.pop("fra").down();
  expect(await read(inLondon, KEYS[0]!)).toMatchObject({ status: 200, sha256: sha256(CONTENT) });
  const cut = (await world.log()).filter(({ path, outcome }) => path.startsWith("/v1/chunk/") && outcome === "down");
  expect(cut.length, "the fault fired").toBeGreaterThan(0);
  await other.close();
});
