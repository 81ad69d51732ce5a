import { defineConfig } from "@playwright/test";
import type { WorldFixtures, WorldWorkerFixtures } from "@agarose/dev-world/playwright";

export default defineConfig<WorldFixtures, WorldWorkerFixtures>({
  testDir: ".",
  testMatch: "**/*.spec.ts",
  testIgnore: process.env["TEST_TIER"] === "fast" ? "**/*.slow.*" : [],
  // The tests of a file share a world and change its faults. Two files at a time, because a test mostly waits.
  workers: 2,
  fullyParallel: false,
  retries: 0,
  // These only end what hangs: a loaded machine is slow, not wrong.
  timeout: 300_000,
  expect: { timeout: 60_000 },
  forbidOnly: !!process.env["CI"],
  reporter: [["list"], ["json"]],
  use: {
    worldOptions: { world: "agar", scale: 0.02, cacheBytes: 20_000_000 },
    browserName: "chromium",
    launchOptions: {
      ...(process.env["CHROMIUM_PATH"] ? { executablePath: process.env["CHROMIUM_PATH"] } : {}),
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
