import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["packages/**/*.test.ts", "demo/**/*.test.ts"],
    // Suites start servers and workerd; two at a time is what two cores carry without timing tests by accident.
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
