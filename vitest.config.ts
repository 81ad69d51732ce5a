import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** A run that began a slow file last would wait for it alone. */
class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isSlow = ({ moduleId }: TestSpecification): boolean => moduleId.includes(".slow.");
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's own method
    const sorted = await super.sort(files);
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    setupFiles: ["scripts/vitest.set-up.ts"],
    projects: [
      {
        extends: true,
        test: { name: "unit", include: ["packages/**/*.test.ts", "demo/**/*.test.ts", "scripts/**/*.test.ts"] },
      },
      /**
       * The contract of a PoP: these suites pass in workerd and on Node. Not among them: what is Cloudflare's (KV that
       * fails, the Cache API, R2 bindings, places, analytics, limits), and what looks into an isolate.
       */
      {
        extends: true,
        test: {
          name: "pop on Node",
          include: ["packages/worker/**/*.pop.workerd.test.ts"],
          env: { POP_RUNTIME: "node" },
        },
      },
    ],
    // `vitest --changed` follows imports; a changed manifest would make it run everything.
    forceRerunTriggers: ["**/vitest.config.ts"],
    // A process takes the next file as it is: to load the same modules again for each takes a third of the time.
    isolate: false,
    // Suites wait three quarters of their time, for servers, timers and turns: six keep two cores busy.
    maxWorkers: 6,
    expect: { poll: { timeout: 60_000 } },
    // These only end what hangs: a loaded machine is slow, not wrong.
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
});
