/** The chunk cache before a Cache API or a KV that fails or hangs. No real one does so on time, so these are fakes. */
import { encodeFrame } from "@agarose/core";
import { SimulatedClock } from "@agarose/core/testing";
import { describe, expect, test, vi } from "vitest";
import { Connections } from "../platform/connections.ts";
import { ChunkCache, KV_DEADLINE_MS, type CacheContext } from "./chunk-cache.ts";
import { FrontCache } from "./front-cache.ts";

const BYTES = new Uint8Array(6 * 1024 * 1024);

const chunkZero = async (name: string): Promise<ArrayBuffer> =>
  encodeFrame("chunk", Number(/:(\d+)$/.exec(name)![1]), 0, BYTES).buffer as ArrayBuffer;

/** A cache whose puts into the Cache API do what `put` does. Default KV: holds chunk 0 of every stripe. */
function cacheWith(put: () => Promise<void>, get: (name: string) => Promise<ArrayBuffer> = chunkZero) {
  const clock = new SimulatedClock();
  const puts = vi.fn<() => Promise<void>>(put);
  const front = new FrontCache("fra", clock, () => ({ match: async () => undefined, put: puts }) as unknown as Cache);
  const later: Promise<unknown>[] = [];
  const context: CacheContext = {
    kv: { get } as unknown as KVNamespace,
    connections: new Connections(),
    waitUntil: (promise) => void later.push(promise),
    spend: () => true,
    onSuspect: () => {},
  };
  const cache = new ChunkCache(front, clock);
  const read = async (stripe: number): Promise<number> => {
    const { frames } = await cache.read("0".repeat(32), stripe, [0], context);
    return frames[0]?.payload.length ?? 0;
  };
  return { clock, puts, later, read };
}

describe("a put into the Cache API", () => {
  test("that fails breaks no read, and nothing that runs after it", async () => {
    const { later, puts, read } = cacheWith(() => Promise.reject(new Error("no space")));
    expect(await read(0)).toBe(BYTES.length);
    await Promise.all(later);
    expect(puts).toHaveBeenCalledTimes(1);
  });

  test("that hangs delays no read, holds at most 16 MiB, and is forgotten after 30 seconds", async () => {
    const { clock, puts, read } = cacheWith(() => new Promise(() => {}));
    for (let stripe = 0; stripe < 5; stripe++) expect(await read(stripe)).toBe(BYTES.length);
    expect(clock.now(), "no read has waited").toBe(0);
    expect(puts, "further ones would exceed the bound").toHaveBeenCalledTimes(2);
    await clock.advance(31_000);
    expect(await read(9)).toBe(BYTES.length);
    expect(puts, "and room comes back").toHaveBeenCalledTimes(3);
  });
});

test("a KV that hangs delays a read by its deadline once, not by each stripe, and is asked again after a pause", async () => {
  const get = vi.fn<() => Promise<ArrayBuffer>>(() => new Promise(() => {}));
  const { clock, read } = cacheWith(async () => {}, get);
  for (let stripe = 0; stripe < 8; stripe++) expect(await clock.run(read(stripe))).toBe(0);
  expect(clock.now()).toBe(KV_DEADLINE_MS);
  expect(get).toHaveBeenCalledTimes(1);
  await clock.advance(5_000);
  get.mockImplementation(() => chunkZero("chunks:0:9"));
  expect(await read(9)).toBe(BYTES.length);
});
