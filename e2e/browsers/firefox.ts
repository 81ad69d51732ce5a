/** Firefox, by WebDriver BiDi. */
import { existsSync } from "node:fs";
import { launch } from "puppeteer-core";
import { NotInstalled, type TestBrowser } from "../fixtures/app-page.ts";

const KNOWN = ["/usr/bin/firefox-esr", "/usr/bin/firefox"];

/** @throws NotInstalled */
export async function startFirefox(): Promise<TestBrowser> {
  const executablePath = [process.env["FIREFOX_PATH"], ...KNOWN].find((path) => path && existsSync(path));
  if (!executablePath) throw new NotInstalled("Firefox is not installed (Debian: firefox-esr; or set FIREFOX_PATH)");
  const browser = await launch({ browser: "firefox", executablePath, headless: true });
  return {
    async open(url) {
      const page = await browser.newPage();
      await page.goto(url);
      return {
        // Puppeteer reads the function's text, as all drivers do; its types want more of the argument.
        evaluate: (fn, argument) => page.evaluate(fn as never, argument) as never,
        close: () => page.close(),
      };
    },
    close: () => browser.close(),
  };
}
