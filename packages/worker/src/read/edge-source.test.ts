/** The chunk cache as a source, beside buckets that are nearer than any cache. KV is a map. */
import { concat, encodeFrame } from "@agarose/core/format";
import { ReadWorld, sampleObject } from "@agarose/core/testing";
import { expect, test } from "vitest";
import { Connections } from "../runtime/connections.ts";
import { ChunkCache, type CacheContext } from "./chunk-cache.ts";
import { EdgeSource } from "./edge-source.ts";
import { FrontCache } from "./front-cache.ts";

test("an object that is cached whole costs no request to a bucket, however near the buckets are", async () => {
  const object = await sampleObject({ k: 4, m: 2, bytes: 4_000, stripeBytes: 1_000 });
  const world = new ReadWorld(object, () => ({ ms: 0.1 }));
  const chunks = [0, 1, 2, 3];
  const context: CacheContext = {
    kv: {
      async get(name: string) {
        const stripe = Number(name.split(":").at(-1));
        return concat(chunks.map((chunk) => encodeFrame("chunk", stripe, chunk, object.shard(stripe, chunk)))).buffer;
      },
    } as unknown as KVNamespace,
    connections: new Connections(),
    waitUntil: () => {},
    spend: () => true,
    onSuspect: () => {},
    onTimed: () => {},
  };
  const front = new FrontCache(
    { pop: "fra", host: () => "fra.example" },
    world.clock,
    () => ({ match: async () => undefined }) as unknown as Cache,
  );
  const cache = new ChunkCache(front, world.clock, 16 * 1024 * 1024);
  const edge = new EdgeSource({ pop: "fra", version: object.manifest.version, chunks, cache, context });
  expect(await world.read({ sources: [edge, ...world.sources] })).toEqual(object.bytes);
  expect(world.requests()).toBe(0);
});
