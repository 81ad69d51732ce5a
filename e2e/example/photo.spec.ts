import { expect, test } from "@agarose/dev-world/playwright";

test.use({ worldOptions: { app: "example/app", scale: 0.1 } });

test("the photo appears in time while Frankfurt is down", async ({ page, world, reads }) => {
  await world.put("photos/cat.svg", "example/app/cat.svg");
  await world.region("s3-frankfurt").down();
  await page.goto("/");
  await expect(page.getByAltText("A cat")).not.toHaveJSProperty("naturalWidth", 0);
  expect(await world.region("s3-frankfurt").fired()).toBeGreaterThan(0);
  expect(await reads.p99()).toBeLessThan(5000);
});
