import type { BrowserContext, Page } from "@playwright/test";
import { faultCases, NEAR, NEXT } from "../cases/faults.ts";
import { openApp, openControlledApp, read, sha256, takeServiceWorker } from "../fixtures/app.ts";
import { runInChromium } from "../fixtures/chromium.ts";
import { requestsDuring } from "../fixtures/requests-during.ts";
import { expect, test } from "../fixtures/test.ts";
import type { LocalWorld } from "@agarose/dev-world/client";

runInChromium(faultCases);

test("caches make up for the region too many", async ({ context, world, putRandom }) => {
  const content = await putRandom("faults/cached", 1_000_000);
  const page = await openControlledApp(context, world);
  for (let i = 0; i < 5; i++) await read(page, "faults/cached");
  await world.cron();
  await world.cron();
  await world.region(NEAR).down();
  await world.region(NEXT).down();
  const fresh = await openControlledApp(context, world);
  const answer = await read(fresh, "faults/cached");
  expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
});

test.describe("without a PoP, under a configuration that lacks regions of an object", () => {
  /** Opens the app with all PoPs down and only `isKnown` regions configured. */
  async function openCutOff(
    context: BrowserContext,
    world: LocalWorld,
    isKnown: (name: string) => boolean,
  ): Promise<Page> {
    for (const { name } of world.pops) await world.pop(name).down();
    const regions = world.regions.map(({ name }) => name).filter(isKnown);
    const page = await openApp(context, world);
    await takeServiceWorker(page, { regions });
    return page;
  }

  test("the others are read while they hold k chunks", async ({ context, world, putRandom }) => {
    const content = await putRandom("faults/one region unknown", 1_000_000);
    const requests = await requestsDuring(world, async () => {
      const page = await openCutOff(context, world, (name) => name !== NEAR);
      const answer = await read(page, "faults/one region unknown");
      expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
    });
    const ofClient = requests.filter(({ from }) => from === "client");
    expect(ofClient.some(({ to, path }) => to === NEXT && path.includes("/chunks/"))).toBe(true);
    expect(ofClient.some(({ to }) => to === NEAR)).toBe(false);
    expect(ofClient.some(({ outcome }) => outcome === "down")).toBe(true);
  });

  test("and with one chunk too few, the error names the regions", async ({ context, world, putRandom }) => {
    await putRandom("faults/two regions unknown", 1_000_000);
    const page = await openCutOff(context, world, (name) => name !== NEAR && name !== NEXT);
    const answer = await read(page, "faults/two regions unknown");
    expect(answer.status).toBe(502);
    const { error } = JSON.parse(answer.text!) as { error: { code: string; details: { regions: string[] } } };
    expect(error.code).toBe("REGION_UNKNOWN");
    expect(new Set(error.details.regions)).toEqual(new Set([NEAR, NEXT]));
  });
});
