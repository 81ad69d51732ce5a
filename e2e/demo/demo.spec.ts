import { expect, test as base } from "@playwright/test";
import { World } from "../fixtures/world.ts";

const test = base.extend<object, { readonly world: World }>({
  world: [
    // eslint-disable-next-line no-empty-pattern
    async ({}, use) => {
      const world = await World.startWithSamples("--scale", "0.02");
      await use(world);
      await world.stop();
    },
    { scope: "worker", timeout: 60_000 },
  ],
});

test("the demo page shows its photographs through the service worker", async ({ page, world }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(world.demo);
  await expect(page.getByText("service worker decodes")).toBeVisible({ timeout: 20_000 });
  const photographs = page.locator("img[src*='/ec/photos/']");
  await expect(photographs.first()).toBeVisible();
  await expect
    .poll(() =>
      photographs.evaluateAll((all) => all.filter((image) => !(image as HTMLImageElement).naturalWidth).length),
    )
    .toBe(0);
  expect(await photographs.count()).toBeGreaterThanOrEqual(12);
  expect(errors).toEqual([]);
});
