/** Finds a Chromium for Playwright, and installs one where there is none. */
import { existsSync } from "node:fs";
import { chromium } from "@playwright/test";
import { environment, nodePath, run } from "./set-up.mjs";

const KNOWN = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The path of a Chromium: `CHROMIUM_PATH`, Playwright's own, or the system's. Undefined when there is none. */
export function findBrowser() {
  const candidates = [process.env.CHROMIUM_PATH, chromium.executablePath(), ...KNOWN];
  return candidates.find((path) => path && existsSync(path));
}

/** `findBrowser`, after installing one by the system's package manager (as root on Debian) or by Playwright. */
export async function ensureBrowser() {
  const found = findBrowser();
  if (found) return found;
  console.error("  browser (none found: installing Chromium)");
  const output = { stdio: ["ignore", 2, 2], env: environment(nodePath()) };
  if (process.getuid?.() === 0 && existsSync("/usr/bin/apt-get")) {
    await run("apt-get", ["update", "-qq"], output);
    await run("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "chromium"], output);
  } else {
    await run("playwright", ["install", "chromium"], output);
  }
  return findBrowser();
}
