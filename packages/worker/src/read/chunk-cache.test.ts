/** The chunk cache before a Cache API or a KV that fails or hangs. No real one does so on time, so these are fakes. */
import { encodeFrame } from "@agarose/core/format";
import { SimulatedClock } from "@agarose/core/testing";
import { describe, expect, test, vi } from "vitest";
import { Connections } from "../runtime/connections.ts";
import { ChunkCache, KV_DEADLINE_MS, type CacheContext } from "./chunk-cache.ts";
import { FrontCache } from "./front-cache.ts";

const BYTES = new Uint8Array(6 * 1024 * 1024);
/** For two values, and not for three. */
const MEMORY_BYTES = 16 * 1024 * 1024;

const chunkZero = async (name: string): Promise<ArrayBuffer> =>
  encodeFrame("chunk", Number(/:(\d+)$/.exec(name)![1]), 0, BYTES).buffer as ArrayBuffer;

/** A cache whose puts into the Cache API do what `put` does. Default KV: holds chunk 0 of every stripe. */
function cacheWith(put: () => Promise<void>, get: (name: string) => Promise<ArrayBuffer> = chunkZero) {
  const clock = new SimulatedClock();
  const puts = vi.fn<() => Promise<void>>(put);
  const front = new FrontCache(
    { pop: "fra", host: () => "fra.example" },
    clock,
    () => ({ match: async () => undefined, put: puts }) as unknown as Cache,
  );
  const later: Promise<unknown>[] = [];
  const context: CacheContext = {
    kv: { get } as unknown as KVNamespace,
    connections: new Connections(),
    waitUntil: (promise) => void later.push(promise),
    spend: () => true,
    onSuspect: () => {},
    onTimed: () => {},
  };
  const cache = new ChunkCache(front, clock, MEMORY_BYTES);
  const { connections } = context;
  const read = async (stripe: number): Promise<number> => {
    const { frames } = await cache.read("0".repeat(32), stripe, [0], context);
    return frames[0]?.payload.length ?? 0;
  };
  return { clock, connections, puts, later, read };
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

test("a KV that hangs gives its connections back to the buckets", async () => {
  const { clock, connections, read } = cacheWith(
    async () => {},
    () => new Promise(() => {}),
  );
  const reads = Array.from({ length: 16 }, (_, stripe) => read(stripe));
  await clock.advance(KV_DEADLINE_MS);
  expect(connections.load).toBe(0);
  expect(new Set(await Promise.all(reads))).toEqual(new Set([0]));
});

test("memory holds as many values as it has bytes, the most recent ones", async () => {
  const get = vi.fn<(name: string) => Promise<ArrayBuffer>>(chunkZero);
  const { read } = cacheWith(async () => {}, get);
  for (const stripe of [0, 1, 0, 1]) await read(stripe);
  expect(get).toHaveBeenCalledTimes(2);
  for (const stripe of [2, 1, 0]) await read(stripe);
  expect(get, "the third value took the place of the first").toHaveBeenCalledTimes(4);
});

describe("data shards that a read has verified", () => {
  const version = "0".repeat(32);
  const contextOf = (get: (name: string) => Promise<ArrayBuffer>): CacheContext => ({
    kv: { get } as unknown as KVNamespace,
    connections: new Connections(),
    waitUntil: () => {},
    spend: () => true,
    onSuspect: () => {},
    onTimed: () => {},
  });
  const noCache = () => ({ match: async () => undefined, delete: async () => false }) as unknown as Cache;

  async function cached() {
    const clock = new SimulatedClock();
    const cache = new ChunkCache(
      new FrontCache({ pop: "fra", host: () => "fra.example" }, clock, noCache),
      clock,
      MEMORY_BYTES,
    );
    const context = contextOf(chunkZero);
    const { frames } = await cache.read(version, 0, [0], context);
    return { cache, context, data: frames.map(({ payload }) => payload) };
  }

  test("are there for the next read, and nowhere before", async () => {
    const { cache, data } = await cached();
    expect(cache.verified(version, 0, [0])).toBeUndefined();
    cache.noteVerified(version, 0, [0], data);
    expect(cache.verified(version, 0, [0])).toBe(data);
    expect(cache.verified(version, 1, [0])).toBeUndefined();
    expect(cache.verified(version, 0, [0, 1])).toBeUndefined();
  });

  test("that came from a bucket say nothing about the bytes in memory", async () => {
    const { cache, data } = await cached();
    cache.noteVerified(version, 0, [0], [data[0]!.slice()]);
    expect(cache.verified(version, 0, [0])).toBeUndefined();
  });

  test("go with the value that was found corrupt, and with a version that is purged", async () => {
    const { cache, context, data } = await cached();
    cache.noteVerified(version, 0, [0], data);
    await cache.reportCorrupt(version, 0, [0], context);
    expect(cache.verified(version, 0, [0])).toBeUndefined();
    const again = (await cache.read(version, 0, [0], context)).frames.map(({ payload }) => payload);
    expect(cache.verified(version, 0, [0]), "the value was read again").toBeUndefined();
    cache.noteVerified(version, 0, [0], again);
    cache.forget(version);
    expect(cache.verified(version, 0, [0])).toBeUndefined();
  });
});
