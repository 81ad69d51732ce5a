import { defineConfig } from "vitest/config";

/** The contract of a PoP: these suites pass in workerd and on Node. */
const POP_CONTRACT = [
  "packages/worker/src/http/{access,admin}.workerd.test.ts",
  "packages/worker/src/http/routes/{metrics,object,range}.workerd.test.ts",
  "packages/worker/src/read/{leaving-clients,publisher-keys}.workerd.test.ts",
];

export default defineConfig({
  test: {
    projects: [
      {
        extends: true,
        test: { name: "all", include: ["packages/**/*.test.ts", "demo/**/*.test.ts", "scripts/**/*.test.ts"] },
      },
      { extends: true, test: { name: "pop on Node", include: POP_CONTRACT, env: { POP_RUNTIME: "node" } } },
    ],
    // `vitest --changed` follows imports; a changed manifest would make it run everything.
    forceRerunTriggers: ["**/vitest.config.ts"],
    // A process takes the next file as it is: to load the same modules again for each takes a third of the time.
    isolate: false,
    // Suites start servers and workerd, and wait for them a third of their time: three keep two cores busy.
    maxWorkers: 3,
    // These only end what hangs: a loaded machine is slow, not wrong.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
