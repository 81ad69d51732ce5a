/** The developer's view of reads: the overlay, and lines on the console. */
import { openInitialisedApp, type InPage } from "../fixtures/initialised-app.ts";
import { expect, test } from "../fixtures/test.ts";

test("the overlay lists reads with their waterfall, and the console has a line for each", async ({
  context,
  world,
  putRandom,
}) => {
  await putRandom("seen/one", 300_000);
  const page = await openInitialisedApp(context, world);
  const lines: string[] = [];
  page.on("console", (message) => lines.push(message.text()));
  await page.evaluate(async () => {
    const { agarose, devtools } = globalThis as unknown as InPage;
    const handle = await agarose.register({ scope: "/" });
    devtools.logReads();
    devtools.showOverlay();
    await (await handle.fetch("seen/one")).arrayBuffer();
    await handle.fetch("seen/nothing");
  });
  const overlay = page.locator("agarose-overlay");
  await expect(overlay.locator("li").filter({ hasText: "seen/one" })).toContainText("200 origin, 300.0 kB in");
  await expect(overlay.locator("li").filter({ hasText: "seen/one" }).locator("rect")).not.toHaveCount(0);
  await expect(overlay.locator(".failed")).toContainText("seen/nothing failed with OBJECT_NOT_FOUND");
  await expect(overlay.locator(".head span")).toHaveText("300.0 kB read, 0 B without a bucket");
  await expect.poll(() => lines.filter((line) => line.startsWith("agarose: seen/")).length).toBe(2);
  await overlay.getByRole("button").click();
  await expect(overlay).toHaveCount(0);
});
