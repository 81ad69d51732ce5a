/** The demo page of the repository, with its samples. */
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, test } from "@agarose/dev-world/playwright";

test.use({ worldOptions: { demo: "../demo/demo.ts" } });

/** Violations that axe finds on the page. */
async function violations(page: Page): Promise<string[]> {
  const found = await new AxeBuilder({ page }).analyze();
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** The counted reads of a contestant, and how many of them failed. */
async function score(page: Page, id: string): Promise<{ failed: number; reads: number }> {
  const [, failed, reads] = /(\d+) of (\d+) failed/.exec((await page.locator(`#${id} .failed`).textContent())!)!;
  return { failed: Number(failed), reads: Number(reads) };
}

test("a region dies: Agarose and two copies go on, what one copy has not cached fails, and all is counted", async ({
  page,
  world,
}) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto("/");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("Kill a region. The page keeps loading.");
  await expect.poll(async () => (await score(page, "agarose")).reads).toBeGreaterThan(3);
  for (const id of ["agarose", "one-copy", "two-copies"]) expect((await score(page, id)).failed).toBe(0);
  // By keyboard, as it is the first control behind the header.
  await page.getByRole("button", { name: "Kill s3-frankfurt" }).press("Enter");
  await expect(page.locator("#since")).toHaveText("s3-frankfurt is down. Counted since then:");
  await expect.poll(async () => (await score(page, "one-copy")).failed).toBeGreaterThan(1);
  await expect.poll(async () => (await score(page, "agarose")).reads).toBeGreaterThan(5);
  expect((await score(page, "agarose")).failed).toBe(0);
  expect((await score(page, "two-copies")).failed).toBe(0);
  expect(await world.region("s3-frankfurt").fired()).toBeGreaterThan(0);
  await page.getByRole("button", { name: "Bring s3-frankfurt back" }).click();
  await expect(page.locator("#since")).toHaveText("All regions are up again. Counted since then:");
  expect((await world.state()).regions.some(({ down }) => down)).toBe(false);
  expect(errors).toEqual([]);
});

test("a region that corrupts its bytes is seen: copies show wrong bytes, Agarose does not", async ({ page, world }) => {
  await page.goto("/");
  await expect.poll(async () => (await score(page, "agarose")).reads).toBeGreaterThan(0);
  await world.region("s3-frankfurt").corrupt();
  await expect.poll(async () => (await score(page, "one-copy")).failed).toBeGreaterThan(0);
  expect((await score(page, "agarose")).failed).toBe(0);
  await page.getByRole("link", { name: "World" }).click();
  await expect(page.locator("#redundancy")).toContainText("no further region may fail");
});

for (const [width, height] of [
  [1440, 900],
  [390, 844],
] as const) {
  test(`the button is in the first screen, and nothing moves while the page loads, ${width} px wide`, async ({
    page,
  }) => {
    await page.setViewportSize({ width, height });
    await page.addInitScript(() => {
      const shifts = { sum: 0 };
      Object.assign(globalThis, { shifts });
      new PerformanceObserver((list) => {
        for (const entry of list.getEntries()) shifts.sum += (entry as unknown as { value: number }).value;
      }).observe({ type: "layout-shift", buffered: true });
    });
    await page.goto("/");
    await expect.poll(async () => (await score(page, "two-copies")).reads).toBeGreaterThan(2);
    await expect(page.getByRole("button", { name: /^Kill / })).toBeInViewport({ ratio: 1 });
    await expect(page.locator("#two-copies .failed")).toBeInViewport({ ratio: 1 });
    expect(await page.evaluate(() => (globalThis as unknown as { shifts: { sum: number } }).shifts.sum)).toBeLessThan(
      0.1,
    );
    await expect(page.getByRole("alert")).toBeHidden();
  });
}

/** Opens the lab and waits until the service worker and the first photograph are there. */
async function openLab(page: Page): Promise<void> {
  await page.goto("/#lab");
  await expect(page.getByText("service worker decodes")).toBeVisible();
  await expect(page.locator("#waterfall .totals")).toBeVisible();
}

/** Waits until every photograph of the page has loaded. */
async function waitForPhotographs(page: Page): Promise<void> {
  const photographs = page.locator("#lab img[src*='/ec/photos/']");
  await expect(photographs.first()).toBeVisible();
  await expect
    .poll(() =>
      photographs.evaluateAll((all) => all.filter((image) => !(image as HTMLImageElement).naturalWidth).length),
    )
    .toBe(0);
  expect(await photographs.count()).toBeGreaterThanOrEqual(12);
}

test("the lab shows its photographs through the service worker", async ({ page }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await openLab(page);
  await waitForPhotographs(page);
  expect(errors).toEqual([]);
});

test("coarse pictures of all photographs are there before the service worker is", async ({ page, context }) => {
  // The worker never starts: what is shown came before it.
  await context.route("**/agarose-sw.js*", () => {});
  await page.goto("/#lab");
  const thumbs = page.locator(".thumbs img");
  await expect(thumbs).toHaveCount(12);
  await expect
    .poll(() =>
      thumbs.evaluateAll((all) => all.filter((image) => !image.style.backgroundImage.includes("blob:")).length),
    )
    .toBe(0);
  const url = /blob:[^"]+/.exec(await thumbs.first().evaluate((image) => image.style.backgroundImage))![0];
  const size = await page.evaluate(async (coarse) => {
    const image = Object.assign(new Image(), { src: coarse });
    await image.decode();
    return [image.naturalWidth, image.naturalHeight];
  }, url);
  expect(size, "the first bytes are a whole picture").toEqual([2000, 1125]);
});

test("the waterfall follows the newest read, also one that begins while another is shown", async ({ page }) => {
  await openLab(page);
  await waitForPhotographs(page);
  for (const name of ["Fig", "Bridge"]) await page.getByRole("button", { name: `Read ${name}` }).click();
  await expect(page.locator("#waterfall")).toContainText("photos/bridge.jpg");
});

test("with too few chunks left, the error says how many are needed and how many are available", async ({
  page,
  world,
}) => {
  await openLab(page);
  // The waterfall follows the newest read, so no other one may still be under way.
  await waitForPhotographs(page);
  for (const name of ["s3-frankfurt", "r2-eu", "gcs-belgium", "b2-amsterdam"]) await world.region(name).down();
  await expect(page.locator("#since")).toHaveText(
    /^s3-frankfurt, .* and b2-amsterdam are down, so uncached .* may fail\./,
  );
  // The caches are warm, so only what the regions have may be left.
  for (const { name } of world.pops) await world.pop(name).down();
  await page.getByRole("button", { name: "Read Picos de Europa" }).click();
  const caption = page.locator("#photos figcaption");
  await expect(caption).toContainText("NOT_ENOUGH_CHUNKS");
  await expect(caption).toContainText(/[45] chunks are needed and [0-4] are available/);
  await expect(page.locator("#waterfall .problem")).toContainText(/NOT_ENOUGH_CHUNKS [45] chunks are needed/);
  expect((await caption.textContent())!.match(/NOT_ENOUGH_CHUNKS/g)).toHaveLength(1);
  expect(await world.region("r2-eu").fired()).toBeGreaterThan(0);
});

const TRIALS = [
  { tab: "100 pictures", button: "Load 100 pictures", says: /^100 pictures in .* by 100 reads: / },
  { tab: "Map", button: "Travel over the map", says: /^[1-9]\d* tiles at 6 places in .* by \d+ reads: / },
  { tab: "Table", button: "Query the weather", says: /^26,280 values of 350,400 rows in .* by \d+ reads: / },
  { tab: "Globe", button: "Load the globe", says: /^358,202 triangles, 7\.18 MB, in .* by 1 read: / },
];

for (const { tab, button, says } of TRIALS) {
  test(`${tab}: a region dies in the middle, all is read, and the figures are there, at 390 px`, async ({
    page,
    world,
  }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await openLab(page);
    await page.getByRole("tab", { name: tab, exact: true }).click();
    const panel = page.getByRole("tabpanel", { name: tab });
    // By keyboard: the switch, then the button before it.
    await panel.getByLabel("kill the nearest region halfway").focus();
    await page.keyboard.press("Space");
    await page.keyboard.press("Shift+Tab");
    await expect(panel.getByRole("button", { name: button })).toBeFocused();
    await page.keyboard.press("Enter");
    const note = panel.getByRole("status");
    await expect(note).toHaveText(says);
    await expect(note).toHaveText(/ fetched for .+ used, .* to other sources\. s3-frankfurt died halfway\.$/);
    await expect.poll(async () => (await world.state()).regions.filter(({ down }) => down)).toEqual([]);
    // As when the request that failed is the last one to end: its note begins where the lane nearly ends.
    await page
      .locator("#waterfall .bar")
      .last()
      .evaluate((bar: HTMLElement) => {
        bar.style.setProperty("--to", "0.82");
        bar.querySelector("em")!.textContent = "SOURCE_FAILED";
      });
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
    expect(await violations(page)).toEqual([]);
  });
}

test("when a library fails, the page shows the code of the read and what to do", async ({ page, world }) => {
  await openLab(page);
  await page.getByRole("tab", { name: "Table" }).click();
  for (const { name } of world.regions) await world.region(name).down();
  for (const { name } of world.pops) await world.pop(name).kv("down");
  const panel = page.getByRole("tabpanel", { name: "Table" });
  await panel.getByRole("button", { name: "Query the weather" }).click();
  await expect(panel.getByRole("status")).toHaveText(/^[A-Z_]{8,} .*[a-z]{3}.*\.$/);
  await expect(page.locator("#status")).toContainText("s3-frankfurt, s3-ireland");
  expect(await world.region("r2-eu").fired()).toBeGreaterThan(0);
});

test("after a Cron Trigger, the page shows what each PoP saves and spends, and how much more may fail", async ({
  page,
  world,
}) => {
  await openLab(page);
  const pops = page.locator("#savings tbody tr");
  await expect(pops).toHaveCount(world.pops.length);
  for (let i = 0; i < 3; i++) await page.evaluate(() => fetch("/ec/photos/seeding.jpg").then((r) => r.arrayBuffer()));
  await world.cron();
  await expect(pops.filter({ hasText: "by cache" })).not.toHaveCount(0);
  await expect(pops.filter({ hasText: /\$0\.0\d+, \d+ writes?/ })).not.toHaveCount(0);
  await page.getByRole("link", { name: "World" }).click();
  await expect(page.locator("#redundancy")).toContainText("1 more region may fail");
  await world.region(world.regions[0]!.name).down();
  await expect(page.locator("#redundancy")).toContainText("no further region may fail");
});

test("the map moves by keyboard, and by its buttons", async ({ page }) => {
  await openLab(page);
  await page.getByRole("tab", { name: "Map", exact: true }).click();
  const map = page.getByRole("application", { name: /^Map\./ });
  const where = page.locator("#land [aria-live=polite]");
  await expect(map.locator("img.leaflet-tile-loaded")).not.toHaveCount(0);
  await expect(where).toHaveText("Zoom 2 at 25° N, 0° E");
  await map.press("ArrowRight");
  await expect(where).toHaveText("Zoom 2 at 25° N, 45° E");
  await map.press("+");
  await expect(where).toHaveText("Zoom 3 at 25° N, 45° E");
  await page.getByRole("button", { name: "South", exact: true }).click();
  await expect(where).toHaveText(/^Zoom 3 at \d° N, 45° E$/);
  await page.getByRole("button", { name: "Zoom out" }).click();
  await expect(where).toHaveText(/^Zoom 2 at/);
  const blank = (): Promise<number> =>
    map
      .locator("img.leaflet-tile-loaded")
      .evaluateAll((tiles) => tiles.filter((tile) => (tile as HTMLImageElement).naturalWidth !== 256).length);
  await expect.poll(blank).toBe(0);
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const width of [1440, 390]) {
    test(`axe finds nothing wrong, nothing overflows and controls are large, ${colorScheme}, ${width} px wide`, async ({
      page,
    }) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await page.goto("/");
      await expect.poll(async () => (await score(page, "two-copies")).reads).toBeGreaterThan(0);
      await page.getByRole("button", { name: "Kill s3-frankfurt" }).click();
      for (const view of ["Kill a region", "World", "Lab"]) {
        await page.getByRole("link", { name: view, exact: true }).click();
        if (view === "World") await expect(page.locator("#switches table")).toHaveCount(2);
        if (view === "Lab") await waitForPhotographs(page);
        expect(await violations(page), view).toEqual([]);
        expect(await page.evaluate(() => document.documentElement.scrollWidth), view).toBe(width);
        expect(await smallControls(page), view).toEqual([]);
      }
    });
  }
}

/** The visible controls below 24 px. One evaluation, because the page draws its tables again with every read. */
function smallControls(page: Page): Promise<string[]> {
  return page.evaluate(() =>
    [...document.querySelectorAll("button, select, input, summary")]
      .filter((control) => control.checkVisibility({ visibilityProperty: true }))
      .flatMap((control) => {
        const { width, height } = control.getBoundingClientRect();
        return width < 24 || height < 24 ? [`${control.outerHTML.slice(0, 80)} ${width} x ${height}`] : [];
      }),
  );
}
