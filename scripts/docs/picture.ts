/**
 * Draws docs/public/demo.jpg, the picture of README: the demo page reads a photograph while its nearest region is down.
 *
 *   node scripts/docs/picture.ts
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { chromium } from "@playwright/test";

const PICTURE = fileURLToPath(new URL("../../docs/public/demo.jpg", import.meta.url));

const CLI = fileURLToPath(new URL("../../packages/cli/bin/agarose.js", import.meta.url));
const PHOTOGRAPH = "Read Bridge";

// Without a Cron Trigger nothing is cached, so the chunks come from the buckets.
const dev = spawn(process.execPath, [CLI, "dev", "--json", "--cron", "0"], { stdio: ["ignore", "pipe", "inherit"] });
try {
  let line = "";
  for await (const part of dev.stdout.setEncoding("utf8")) {
    line += part;
    if (line.endsWith("}\n")) break;
  }
  const { demo, control, regions } = JSON.parse(line) as Record<"demo" | "control", string> & {
    regions: { name: string; latencyMs: number }[];
  };
  const nearest = regions.toSorted((a, b) => a.latencyMs - b.latencyMs)[0]!.name;
  const { CHROMIUM_PATH: executablePath } = process.env;
  const browser = await chromium.launch(executablePath === undefined ? {} : { executablePath });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "dark" });
  await page.goto(demo);
  await page.waitForFunction(() =>
    [...document.querySelectorAll("img")].every(({ complete, naturalWidth }) => complete && naturalWidth > 0),
  );
  await fetch(`${control}/regions/${nearest}`, { method: "POST", body: '{"down":true}' });
  await page.getByRole("button", { name: PHOTOGRAPH }).click();
  const waterfall = page.locator("#waterfall");
  await waterfall.getByText("SOURCE_FAILED").first().waitFor();
  await waterfall.getByText("degraded").waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll("#photos img")].every((image) => image.complete));
  const clip = await page.evaluate(() => {
    const boxOf = (selector: string): DOMRect => document.querySelector(selector)!.getBoundingClientRect();
    const [samples, reads] = [boxOf(".panel.samples"), boxOf(".panel.reads")];
    const height = boxOf("#waterfall").bottom - samples.top;
    return { x: samples.left + scrollX, y: samples.top + scrollY, width: reads.right - samples.left, height };
  });
  await page.screenshot({ path: PICTURE, type: "jpeg", quality: 80, fullPage: true, clip });
  await browser.close();
} finally {
  dev.kill("SIGINT");
  await once(dev, "exit");
}
