import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * The contract of a PoP: these suites pass in workerd and on Node. Not among them: what is Cloudflare's (KV that fails,
 * the Cache API, R2 bindings, places, analytics, limits), what looks into an isolate, and `peers.workerd.test.ts`,
 * which takes a minute and a second isolate.
 */
const POP_CONTRACT = [
  "packages/worker/src/http/{access,admin}.workerd.test.ts",
  "packages/worker/src/http/routes/{metrics,object,object-bytes,plans,range,read,unknown-code}.workerd.test.ts",
  "packages/worker/src/read/{bounded-reads,leaving-clients,publisher-keys,unknown-keys}.workerd.test.ts",
  "packages/worker/src/cache/{functional,period,popularity,purge,recovered}.workerd.test.ts",
  "packages/worker/src/regions/{region-health,spread}.workerd.test.ts",
  "packages/worker/src/peers/{peers-c2p,peers-trust}.workerd.test.ts",
  "packages/worker/src/runtime/trace.workerd.test.ts",
];

/** Files of a minute and more. A run that began one of them last would wait for it alone. */
const LONG = [
  "packages/cli/src/commands/put/bulk.test.ts",
  "packages/storage/test/interleavings/mutants.test.ts",
  "packages/cli/test/kills/kills.test.ts",
  "packages/worker/src/cache/period.workerd.test.ts",
  "packages/worker/src/peers/peers-fill.workerd.test.ts",
  "packages/worker/src/peers/peers.workerd.test.ts",
  "packages/worker/test/hostile-costs.test.ts",
  "scripts/docs/commands.test.ts",
];

class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.some((path) => moduleId.endsWith(path));
    // oxlint-disable-next-line unicorn/no-array-sort -- the sequencer's own method
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: LongFirst },
    setupFiles: ["scripts/vitest.set-up.ts"],
    projects: [
      {
        extends: true,
        test: { name: "unit", include: ["packages/**/*.test.ts", "demo/**/*.test.ts", "scripts/**/*.test.ts"] },
      },
      { extends: true, test: { name: "pop on Node", include: POP_CONTRACT, env: { POP_RUNTIME: "node" } } },
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
