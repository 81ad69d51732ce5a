import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/**/*.test.ts", "demo/**/*.test.ts", "scripts/**/*.test.ts"],
    // `vitest --changed` follows imports; a changed manifest would make it run everything.
    forceRerunTriggers: ["**/vitest.config.ts"],
    // Suites start servers and workerd; two at a time is what two cores carry without timing tests by accident.
    maxWorkers: 2,
    // These only end what hangs: a loaded machine is slow, not wrong.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
