/**
 * Finds a Chromium for Playwright, and installs one where there is none. Run by itself, it installs the further
 * browsers that the core suite runs in, where Debian's package manager can; where it cannot, their tests skip.
 */
import { existsSync } from "node:fs";
import { chromium } from "@playwright/test";
import { fileURLToPath } from "node:url";
import { environment, nodePath, run } from "./set-up.mjs";

/**
 * Packages of Debian, and a file by which each is known to be there. WebKitGTK draws on a display: Xvfb's is in memory.
 */
const FURTHER = {
  "firefox-esr": "/usr/bin/firefox-esr",
  "webkit2gtk-driver": "/usr/bin/WebKitWebDriver",
  xvfb: "/usr/bin/Xvfb",
  // Write and read through the gateway.
  rclone: "/usr/bin/rclone",
  fuse3: "/usr/bin/fusermount3",
  restic: "/usr/bin/restic",
  s3cmd: "/usr/bin/s3cmd",
  "docker-registry": "/usr/bin/docker-registry",
  // Has promtool, by which alerts and dashboard are checked. Without it their tests fail in CI.
  prometheus: "/usr/bin/promtool",
};
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
  if (isRootOnDebian()) await aptInstall(["chromium"]);
  else await run("playwright", ["install", "chromium"], { stdio: ["ignore", 2, 2], env: environment(nodePath()) });
  return findBrowser();
}

/** Installs Firefox and WebKitGTK where they are missing and can be had. Never fails: without them fewer tests run. */
async function tryFurtherBrowsers() {
  const missing = Object.keys(FURTHER).filter((name) => !existsSync(FURTHER[name]));
  if (missing.length === 0) return;
  if (!isRootOnDebian()) return console.error(`  further browsers: install ${missing.join(", ")} to test in them too`);
  console.error(`  further browsers: installing ${missing.join(", ")}`);
  if ((await aptInstall(missing)) !== 0) console.error("  further browsers: not to be had, their tests are skipped");
}

function isRootOnDebian() {
  return process.getuid?.() === 0 && existsSync("/usr/bin/apt-get");
}

/** Gives up soon where there is no network. */
async function aptInstall(packages) {
  const options = { stdio: ["ignore", "ignore", 2], env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } };
  const patience = ["-o", "Acquire::http::Timeout=30", "-o", "Acquire::Retries=1"];
  await run("apt-get", [...patience, "update", "-qq"], options);
  return run("apt-get", [...patience, "install", "-y", "-qq", "--no-install-recommends", ...packages], options);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await tryFurtherBrowsers();
