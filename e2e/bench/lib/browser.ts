/**
 * Chromium as the specs start it, driven by the library alone, with its process known so that its memory can be read.
 */
import { chromium, type Browser } from "@playwright/test";
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
