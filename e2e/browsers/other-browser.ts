import { startOriginHost, type AppFile, type OriginHost } from "../fixtures/origin-host.ts";
import { NotInstalled, type TestBrowser } from "../fixtures/app-page.ts";
import type { BrowserCase } from "../cases/case.ts";
import { takeServiceWorker } from "../fixtures/app.ts";
import { test } from "../fixtures/test.ts";

/** Set by the jobs that exist for one browser: there, a browser that is missing is a failure. */
const IS_REQUIRED = Boolean(process.env["BROWSERS_REQUIRED"]);

/** One test per case in a browser that Playwright does not drive; all of them skip where it is not installed. */
export function runInBrowser(
  browserName: string,
  start: () => Promise<TestBrowser>,
  cases: readonly BrowserCase[],
  { workersReport = true }: { readonly workersReport?: boolean } = {},
): void {
  let browser: TestBrowser | undefined;
  let missing = "";

  test.beforeAll(async () => {
    try {
      browser = await start();
    } catch (error) {
      if (IS_REQUIRED || !(error instanceof NotInstalled)) throw error;
      missing = error.message;
      console.log(`  skipped: ${missing}`);
    }
  });
  test.afterAll(() => browser?.close());

  for (const { name, run } of cases) {
    test(`${browserName}: ${name}`, async ({ world, putRandom }) => {
      test.skip(browser === undefined, missing);
      const hosts: OriginHost[] = [];
      const pages: Awaited<ReturnType<TestBrowser["open"]>>[] = [];
      const open = async (headers: Record<string, string> = {}, files: Readonly<Record<string, AppFile>> = {}) => {
        const host = await startOriginHost(world.app, headers, files);
        hosts.push(host);
        const page = await browser!.open(host.url);
        pages.push(page);
        return { page, reports: host.reports };
      };
      try {
        await run({
          world,
          folder: `${browserName.toLowerCase()}/`,
          workersReport,
          putRandom,
          openApp: async () => (await open()).page,
          openControlledApp: async () => {
            const { page } = await open();
            await takeServiceWorker(page);
            return page;
          },
          openAppServedWith: open,
        });
      } finally {
        for (const page of pages) await page.close();
        for (const host of hosts) await host.close();
      }
    });
  }
}
