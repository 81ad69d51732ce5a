import { expect, test } from "@agarose/dev-world/playwright";

test.use({ worldOptions: { demo: true, scale: 0.02 } });

test("the demo page shows its photographs through the service worker", async ({ page, world }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto(world.app);
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
