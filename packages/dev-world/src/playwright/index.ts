/**
 * Playwright's `test` with a local world: tests of latency and of faults for an app that reads through Agarose.
 *
 * @module
 */
export { expect } from "@playwright/test";
export { Reads, type Read } from "./reads.ts";
export { test, type WorldFixtures, type WorldWorkerFixtures } from "./test.ts";
export type { LocalWorld, LocalWorldOptions, PutFileOptions } from "../client/index.ts";
