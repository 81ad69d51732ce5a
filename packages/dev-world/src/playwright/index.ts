/**
 * Playwright's `test` with a local world: tests of latency and of faults for an app that reads through Agarose.
 *
 * @module
 */
export { slowCpu } from "./cpu.ts";
export { expect, type LatencyLimit } from "./expect.ts";
export { Reads, type Read, type ReadRequest, type RepeatedRead } from "./reads.ts";
export { test, type ReadTrace, type WorldFixtures, type WorldWorkerFixtures } from "./test.ts";
export type { LocalWorld, LocalWorldOptions, PutFileOptions } from "../client/index.ts";
