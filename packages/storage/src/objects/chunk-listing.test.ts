import { systemClock } from "@agarose/core";
import { chunkBytes, chunkName, type Manifest } from "@agarose/core/format";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ListedObject, Store } from "../buckets/store.ts";
import { Breaker } from "../regions/ask-regions.ts";
import { listChunks, type ListedChunk } from "./chunk-listing.ts";

const PLACEMENT = ["dublin", "frankfurt", "tokyo"];
const MANIFEST = {
  key: "a",
  upload: "0123456789abcdef0123456789abcdef",
  bytes: 100,
  stripeBytes: 100,
  k: 2,
  m: 1,
  placement: PLACEMENT,
} as unknown as Manifest;

let breaker: Breaker;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  breaker = new Breaker(systemClock);
});

afterEach(() => {
  vi.useRealTimers();
});

/** Lists the chunks while tokyo takes `tokyoMs` and the others 10 ms, for at most a minute. */
async function list(tokyoMs: number): Promise<{ chunks: ListedChunk[]; ms: number }> {
  const stores = PLACEMENT.map((name, chunk) => ({
    region: { name },
    async *list(): AsyncGenerator<ListedObject> {
      await new Promise((resolve) => setTimeout(resolve, name === "tokyo" ? tokyoMs : 10));
      yield { name: chunkName(MANIFEST.key, MANIFEST.upload, chunk), bytes: chunkBytes(MANIFEST), modifiedMs: 0 };
    },
  }));
  const startMs = performance.now();
  const { signal } = new AbortController();
  const context = { stores: stores as unknown as Store[], clock: systemClock, signal, breaker };
  const listing = listChunks(MANIFEST, context as unknown as Parameters<typeof listChunks>[1]).then((chunks) => ({
    chunks,
    ms: performance.now() - startMs,
  }));
  await vi.advanceTimersByTimeAsync(60_000);
  return listing;
}

const codes = (chunks: readonly ListedChunk[]): unknown[] => chunks.map(({ code }) => code);

test("a region that lists its chunks long after the others is heard", async () => {
  const { chunks, ms } = await list(8_000);
  expect(codes(chunks)).toEqual([undefined, undefined, undefined]);
  expect(ms).toBe(8_000);
});

test("a region that hangs is waited for half a minute, and the next time for seconds", async () => {
  const first = await list(120_000);
  expect(codes(first.chunks)).toEqual([undefined, undefined, "SOURCE_FAILED"]);
  expect(first.ms).toBe(30_000);
  const next = await list(120_000);
  expect(codes(next.chunks)).toEqual([undefined, undefined, "SOURCE_FAILED"]);
  expect(next.ms).toBe(2_510);
});
