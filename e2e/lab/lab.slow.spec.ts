/** `npm run lab`, on few requests, and its page in a browser. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { AxeBuilder } from "@axe-core/playwright";
import { expect, test } from "@playwright/test";

const MAIN = fileURLToPath(new URL("main.ts", import.meta.url));
const RECORD = new URL("../../docs/internals/benchmarks.md", import.meta.url);

test("one command writes a page whose plots can be filtered by keyboard, and axe finds nothing", async ({
  browser,
}, testInfo) => {
  const file = testInfo.outputPath("lab.html");
  await promisify(execFile)(process.execPath, [MAIN, "--quick", "--output", file]);
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  const page = await context.newPage();
  const requests: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(file).href);
  const plots = page.locator("section:visible");
  const all = await plots.count();
  expect(all).toBeGreaterThan(10);
  await expect(page.getByText(`${all} of ${all} plots`)).toBeVisible();
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(390);
  const { violations } = await new AxeBuilder({ page }).analyze();
  expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);

  await page.getByLabel("Question").selectOption("What does each idea bring?");
  await page.getByLabel("Way").selectOption("simulated");
  await expect(plots.getByRole("heading")).toHaveText(["ablation, 2% stragglers: simulated"]);
  await expect(plots.locator("tbody tr")).toHaveCount(6);
  await page.getByText("Policies and systems").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "None" }).press("Enter");
  await expect(page.getByText(`0 of ${all} plots`)).toBeVisible();
  await page.getByLabel("without late binding (EC-Cache)").press("Space");
  await expect(plots.locator("tbody tr:visible")).toHaveText([/^without late binding \(EC-Cache\)\d+\d+[+-][\d.]+%$/]);

  await page.getByRole("button", { name: "All" }).press("Enter");
  await page.getByLabel("Question").selectOption("all");
  await page.getByLabel("Way").selectOption("real");
  await page.getByLabel("Fault all").selectOption("nearest region down");
  const failed = await failedReadsOnRecord("nearest region down: one copy, CDN");
  expect(failed).toHaveLength(2);
  for (const reads of failed) {
    await expect(plots.getByRole("row", { name: new RegExp(`^one copy, CDN .* ${reads}$`) })).toBeVisible();
  }
  expect(requests).toHaveLength(1);
  await context.close();
});

/** The last column of every row of that name in the measured comparisons, which a new measurement changes. */
async function failedReadsOnRecord(row: string): Promise<string[]> {
  const lines = (await readFile(RECORD, "utf8")).split("\n").filter((line) => line.startsWith(`| ${row} `));
  return lines.map((line) => line.split("|").at(-2)!.trim());
}
