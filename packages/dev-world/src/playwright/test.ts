/** The fixtures. */
import { dirname } from "node:path";
import { test as base } from "@playwright/test";
import { LocalWorld, type LocalWorldOptions } from "../client/local-world.ts";
import { READS_ATTACHMENT, READS_TYPE } from "./attachments.ts";
import { Reads } from "./reads.ts";
import { waterfallPage } from "./waterfall.ts";

/** When a test's report gets a page with a waterfall of its reads. */
export type ReadTrace = "on" | "on-failure" | "off";

/** Fixtures of one test. */
export interface WorldFixtures {
  /** Whether the reads of a test that uses `reads` go into its report. Default: `on-failure`. */
  readonly readTrace: ReadTrace;
  /** The reads of the test's pages. */
  readonly reads: Reads;
  /** Resets the world after each test. */
  readonly mended: void;
}

/** Fixtures that the tests of one worker share. */
export interface WorldWorkerFixtures {
  /**
   * How to start the world: `test.use({ worldOptions: { … } })` at the top of a file, or `use` in the configuration.
   */
  readonly worldOptions: LocalWorldOptions;
  /** The world. It starts with the first test of a worker that uses it. */
  readonly world: LocalWorld;
}

/** It only ends what hangs: a loaded machine is slow, not wrong. */
const START_MS_MAX = 300_000;

/** Playwright's `test` with a world whose app is the base URL of every page. */
export const test = base.extend<WorldFixtures, WorldWorkerFixtures>({
  worldOptions: [{}, { scope: "worker", option: true }],
  world: [
    async ({ worldOptions }, use, { config: { configFile, rootDir } }) => {
      const folder = configFile === undefined ? rootDir : dirname(configFile);
      const world = await LocalWorld.start({ folder, ...worldOptions });
      await use(world);
      await world.stop();
    },
    { scope: "worker", timeout: START_MS_MAX },
  ],
  baseURL: ({ world }, use) => use(world.app),
  readTrace: ["on-failure", { option: true }],
  reads: async ({ context, readTrace, world }, use, testInfo) => {
    const reads = await Reads.collect(context, world);
    await use(reads);
    const isWanted = readTrace === "on" || (readTrace === "on-failure" && testInfo.status !== testInfo.expectedStatus);
    if (!isWanted) return;
    const all = await reads.all();
    const body = waterfallPage(testInfo.title, all);
    await testInfo.attach(READS_ATTACHMENT, { contentType: "text/html", body });
    await testInfo.attach(READS_ATTACHMENT, { contentType: READS_TYPE, body: JSON.stringify(all) });
  },
  mended: [
    async ({ world }, use) => {
      await use();
      await world.reset();
    },
    { auto: true },
  ],
});
