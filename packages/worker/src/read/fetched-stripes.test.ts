/** Puts that never end: their invocation was cancelled, which runs no further line of it. */
import { SimulatedClock } from "@agarose/core/testing";
import { expect, test, vi } from "vitest";
import type { CacheContext } from "./chunk-cache.ts";
import { FetchedStripes } from "./fetched-stripes.ts";
import type { FrontCache } from "./front-cache.ts";

test("stripes whose puts died with their invocation do not keep later ones out of the cache", async () => {
  const clock = new SimulatedClock();
  const put = vi.fn<() => Promise<void>>(() => new Promise(() => {}));
  const fetched = new FetchedStripes({ put } as unknown as FrontCache, clock, Date.now, true);
  const context = { spend: () => true, waitUntil: () => {} } as unknown as CacheContext;
  const readTwice = (stripe: number): void => {
    const data = [new Uint8Array(6 * 1024 * 1024)];
    for (let read = 0; read < 2; read++) fetched.note("0".repeat(32), stripe, data, context);
  };
  for (let stripe = 0; stripe < 4; stripe++) readTwice(stripe);
  await vi.waitFor(() => expect(put, "16 MiB are the most").toHaveBeenCalledTimes(2));
  await clock.advance(31_000);
  readTwice(9);
  await vi.waitFor(() => expect(put).toHaveBeenCalledTimes(3));
});
