import { defineConfig } from "@playwright/test";
import type { WorldFixtures, WorldWorkerFixtures } from "@agarose/dev-world/playwright";

export default defineConfig<WorldFixtures, WorldWorkerFixtures>({
  testDir: ".",
  testMatch: "**/*.spec.ts",
  // One world at a time: the specs change its faults, and latency tests need the machine for themselves.
  workers: 1,
  fullyParallel: false,
  retries: 0,
  timeout: 60_000,
  forbidOnly: !!process.env["CI"],
  reporter: [["list"], ["json"]],
  use: {
    worldOptions: { scale: 0.02, cacheBytes: 20_000_000 },
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
