/** Chromium as the specs start it, driven by the library only. */
import { chromium, type Browser, type BrowserContext, type Page } from "@playwright/test";
import type { LocalWorld } from "@agarose/dev-world/client";
import config from "../../playwright.config.ts";

/** Starts it. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch(config.use?.launchOptions);
}

/** The version of that Chromium. */
export async function chromiumVersion(): Promise<string> {
  const browser = await startBrowser();
  const version = browser.version();
  await browser.close();
  return version;
}

/**
 * A page of the world's app without a service worker. Its document comes over the network, because other documents may
 * not fetch from the loopback address.
 */
export async function openPlainPage(context: BrowserContext, world: LocalWorld): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${world.app}agarose.json`);
  return page;
}
