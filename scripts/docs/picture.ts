/**
 * Draws docs/public/demo.jpg, the picture of README: the demo page while the nearest region is down. Run it on a quiet
 * machine, because the page shows how long its reads take.
 *
 *   node scripts/docs/picture.ts
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { chromium } from "@playwright/test";

const PICTURE = fileURLToPath(new URL("../../docs/public/demo.jpg", import.meta.url));

const CLI = fileURLToPath(new URL("../../packages/cli/bin/agarose.js", import.meta.url));
/** Reads of each contestant while the region is down: as many as the page shows bars. */
const READS = 24;

const dev = spawn(process.execPath, [CLI, "dev", "--json"], { stdio: ["ignore", "pipe", "inherit"] });
try {
  let line = "";
  for await (const part of dev.stdout.setEncoding("utf8")) {
    line += part;
    if (line.endsWith("}\n")) break;
  }
  const { demo } = JSON.parse(line) as { demo: string };
  const { CHROMIUM_PATH: executablePath } = process.env;
  const browser = await chromium.launch(executablePath === undefined ? {} : { executablePath });
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "dark" });
  await page.goto(demo);
  const score = page.locator("#agarose .failed");
  await score.filter({ hasText: / of [5-9] / }).waitFor();
  await page.getByRole("button", { name: /^Kill s3-/ }).click();
  await score.filter({ hasText: ` of ${READS} ` }).waitFor();
  await page.locator("#one-copy [data-problem='no answer']").waitFor();
  await page.screenshot({ path: PICTURE, type: "jpeg", quality: 80 });
  await browser.close();
} finally {
  dev.kill("SIGINT");
  await once(dev, "exit");
}
