/**
 * Chromium as the specs start it, driven by the library alone, with its process known so that its memory can be read.
 */
import { chromium, type Browser, type BrowserContext, type Page } from "@playwright/test";
import type { LocalWorld } from "@agarose/dev-world/client";
import config from "../../playwright.config.ts";

export interface BenchBrowser {
  readonly browser: Browser;
  readonly pid: number;
  close(): Promise<void>;
}

/** @param args beside those of the specs. */
export async function startBrowser(args: readonly string[] = []): Promise<BenchBrowser> {
  const options = config.use?.launchOptions ?? {};
  const server = await chromium.launchServer({ ...options, args: [...(options.args ?? []), ...args] });
  const browser = await chromium.connect(server.wsEndpoint());
  return {
    browser,
    pid: server.process().pid!,
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

/** The version of that Chromium. */
export async function chromiumVersion(): Promise<string> {
  const { browser, close } = await startBrowser();
  const version = browser.version();
  await close();
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
