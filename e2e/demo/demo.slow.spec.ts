/** The demo page of the repository, with its samples. */
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "@playwright/test";
import { expect, test } from "@agarose/dev-world/playwright";
import { textReader } from "../../demo/library/packages.ts";

test.use({ worldOptions: { demo: "../demo/demo.ts", scale: 0.02 } });

/** Opens the page and waits until the service worker and the first photograph are there. */
async function openDemo(page: Page): Promise<void> {
  await page.goto("/");
  await expect(page.getByText("service worker decodes")).toBeVisible();
  await expect(page.locator("#waterfall .totals")).toBeVisible();
}

/** Waits until every photograph of the page has loaded. */
async function waitForPhotographs(page: Page): Promise<void> {
  const photographs = page.locator("img[src*='/ec/photos/']");
  await expect(photographs.first()).toBeVisible();
  await expect
    .poll(() =>
      photographs.evaluateAll((all) => all.filter((image) => !(image as HTMLImageElement).naturalWidth).length),
    )
    .toBe(0);
  expect(await photographs.count()).toBeGreaterThanOrEqual(12);
}

test("the demo page shows its photographs through the service worker", async ({ page }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await openDemo(page);
  await waitForPhotographs(page);
  expect(errors).toEqual([]);
});

test("coarse pictures of all photographs are there before the service worker is", async ({ page, context }) => {
  // The worker never starts: what is shown came before it.
  await context.route("**/agarose-sw.js*", () => {});
  await page.goto("/");
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
  await openDemo(page);
  await waitForPhotographs(page);
  for (const name of ["Fig", "Bridge"]) await page.getByRole("button", { name: `Read ${name}` }).click();
  await expect(page.locator("#waterfall")).toContainText("photos/bridge.jpg");
});

test("with too few chunks left, the error says how many are needed and how many are available", async ({
  page,
  world,
}) => {
  await openDemo(page);
  // The waterfall follows the newest read, so no other one may still be under way.
  await waitForPhotographs(page);
  for (const name of ["frankfurt", "dublin", "n-virginia"]) await world.region(name).down();
  for (const { name } of world.pops) await world.pop(name).kv("down");
  await page.getByRole("button", { name: "Read Picos de Europa" }).click();
  const caption = page.locator("#photos figcaption");
  await expect(caption).toContainText("NOT_ENOUGH_CHUNKS");
  await expect(caption).toContainText(/9 chunks are needed and [0-8] are available/);
  await expect(page.locator("#waterfall .problem")).toContainText(/NOT_ENOUGH_CHUNKS 9 chunks are needed/);
  expect((await caption.textContent())!.match(/NOT_ENOUGH_CHUNKS/g)).toHaveLength(1);
  expect(await world.region("dublin").fired()).toBeGreaterThan(0);
});

const READER = "Text reader";
const TRIALS = [
  { tab: "100 pictures", button: "Load 100 pictures", says: /^100 pictures in .* 100 of 100 reads asked/ },
  { tab: "Map", button: "Travel over the map", says: /^[1-9]\d* tiles at 6 places in .* reads asked/ },
  { tab: "Table", button: "Query the weather", says: /^26,280 values of 350,400 rows in .* reads asked/ },
  { tab: "Film in pieces", button: "Play the film in pieces", says: /^[1-9]\d* pieces from 4 places .* reads asked/ },
  { tab: "Globe", button: "Load the globe", says: /^358,202 triangles, 7\.18 MB, in .* 1 of 1 read asked/ },
  { tab: READER, button: "Read the line", says: /^A model of 10\.8 MB loaded and read the line in .* asked/ },
];

for (const { tab, button, says } of TRIALS) {
  test(`${tab}: a region dies in the middle, all is read, and the figures are there, at 390 px`, async ({
    page,
    world,
  }) => {
    if (tab === READER) {
      const reader = await textReader();
      test.skip("missing" in reader, "missing" in reader ? reader.missing : "");
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await openDemo(page);
    await page.getByRole("tab", { name: tab, exact: true }).click();
    const panel = page.getByRole("tabpanel", { name: tab });
    // By keyboard: the switch, then the button before it.
    await panel.getByLabel("the nearest region dies meanwhile").focus();
    await page.keyboard.press("Space");
    await page.keyboard.press("Shift+Tab");
    await expect(panel.getByRole("button", { name: button })).toBeFocused();
    await page.keyboard.press("Enter");
    const note = panel.getByRole("status");
    await expect(note).toHaveText(says);
    await expect(note).toHaveText(/fetched, \d+\.\d bytes for a byte that was used\. frankfurt died meanwhile\.$/);
    if (tab === READER) await expect(panel).toContainText("It reads: Any nine of twelve pieces are enough.");
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
    const { violations } = await new AxeBuilder({ page }).analyze();
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
  });
}

test("after a Cron Trigger, the page says what each PoP saves and spends, and how much more may fail", async ({
  page,
  world,
}) => {
  await page.goto("/");
  const pops = page.locator("#savings tbody tr");
  await expect(pops).toHaveCount(world.pops.length);
  await expect(page.locator("#redundancy")).toContainText("1 more region may fail");
  for (let i = 0; i < 3; i++) await page.evaluate(() => fetch("/ec/photos/seeding.jpg").then((r) => r.arrayBuffer()));
  await world.cron();
  await expect(pops.filter({ hasText: "by cache" })).not.toHaveCount(0);
  // Nothing was cached while the picture was read.
  await expect(pops.filter({ hasText: /\d ms a read/ })).not.toHaveCount(0);
  await expect(pops.filter({ hasText: /\$0\.0\d+, \d+ writes?/ })).not.toHaveCount(0);
  await world.region(world.regions[0]!.name).down();
  await expect(page.locator("#redundancy")).toContainText("no further region may fail");
});

test("the map moves by keyboard, and by its buttons", async ({ page }) => {
  await openDemo(page);
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
    test(`axe finds nothing wrong with the page, ${colorScheme}, ${width} px wide, with its overlay`, async ({
      page,
    }) => {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await openDemo(page);
      await page.getByRole("button", { name: "Overlay of reads" }).click();
      await expect(page.locator("agarose-overlay .head")).toBeVisible();
      await page.getByRole("button", { name: "Read Bridge" }).click();
      await expect(page.locator("agarose-overlay li")).not.toHaveCount(0);
      await expect(page.locator("#switches table")).toHaveCount(2);
      const { violations } = await new AxeBuilder({ page }).analyze();
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
      expect(found).toEqual([]);
    });
  }
}

test("at 390 px nothing overflows, and every control is at least 24 px large", async ({ page }) => {
  await page.setViewportSize({ width: 390, height: 844 });
  await openDemo(page);
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  expect(width).toBe(390);
  // One evaluation, because the page draws its tables again with every read.
  const small = await page.evaluate(() => {
    const withShadow = (root: ParentNode): Element[] =>
      [...root.querySelectorAll("*")].flatMap((element) => [
        element,
        ...(element.shadowRoot ? withShadow(element.shadowRoot) : []),
      ]);
    return withShadow(document)
      .filter((element) => element.matches("button, select, input, summary"))
      .filter((control) => control.checkVisibility({ visibilityProperty: true }))
      .flatMap((control) => {
        const { width: wide, height } = control.getBoundingClientRect();
        return wide < 24 || height < 24 ? [`${control.outerHTML.slice(0, 80)} ${wide} x ${height}`] : [];
      });
  });
  expect(small).toEqual([]);
});
