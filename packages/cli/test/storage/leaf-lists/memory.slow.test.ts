/** The memory of a put, a get, a verify and a repair does not grow with the number of stripes. */
import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import { setImmediate as others } from "node:timers/promises";
import { systemClock, type FetchedResponse } from "@agarose/core";
import {
  BLOCK_BYTES,
  chunkBytes,
  LEAF_LIST,
  leafListBytes,
  pageStripesOf,
  sealManifest,
  type Manifest,
} from "@agarose/core/format";
import { javascriptCodec } from "@agarose/ec-wasm";
import type { Store } from "@agarose/storage/buckets/store";
import type { Config } from "@agarose/storage/config/config";
import { LeafListUpload } from "@agarose/storage/leaf-lists/leaf-list-upload";
import { checkLeafLists } from "@agarose/storage/leaf-lists/leaf-lists";
import { nodeSha256 } from "@agarose/storage/objects/sha256";
import { getObject } from "@agarose/storage/objects/get-object";
import { checkChunks } from "@agarose/storage/objects/verify-object";
import { Breaker } from "@agarose/storage/regions/ask-regions";
import { SalvageReader } from "@agarose/storage/repair/salvage-reader";
import { uploadChunks } from "@agarose/storage/upload/upload";
import { expect, test } from "vitest";
import { heapInUse } from "../../heap.ts";

const REGIONS = ["a", "b", "c", "d", "e", "f"];
const CODE = { k: 4, m: 2 };
const STRIPE_BYTES = 64;
const SHARD = new Uint8Array(STRIPE_BYTES / CODE.k);

/** Everything that a step does not give back, while it runs, in bytes. */
async function growthOf(step: (look: () => void) => Promise<void>): Promise<number> {
  const before = heapInUse();
  let most = 0;
  await step(() => (most = Math.max(most, heapInUse() - before)));
  return most;
}

/** A function that calls `look` for the first of each `every` calls. */
function sampled(look: () => void, every: number): () => void {
  let calls = 0;
  return () => void (calls++ % every === every - 1 && look());
}

/** An object of zeros in regions that keep nothing of it: all of its shards are equal, and so are their hashes. */
async function zeros(stripes: number) {
  const bytes = stripes * STRIPE_BYTES;
  const shape = { ...CODE, bytes, stripeBytes: STRIPE_BYTES, blockBytes: BLOCK_BYTES };
  const pageStripes = pageStripesOf(shape)!;
  const hash = await nodeSha256(SHARD);
  const object = { ...shape, pageStripes };
  let onPart = (): void => {};
  const stores = REGIONS.map((name): Store => {
    const get = async (path: string, range = ""): Promise<FetchedResponse> => {
      const isList = path.endsWith(`/${LEAF_LIST}`);
      const all = isList ? leafListBytes(object) : chunkBytes(object);
      const [, from = 0, to = all - 1] = /^bytes=(\d+)-(\d*)$/.exec(range)?.map((at) => Number(at || all - 1)) ?? [];
      const unit = isList ? hash : SHARD;
      const parts = async function* (): AsyncGenerator<Uint8Array> {
        for (let at = from; at <= to;) {
          const part = new Uint8Array(Math.min(65_536, to + 1 - at));
          for (let i = 0; i < part.length; i++) part[i] = unit[(at + i) % unit.length]!;
          at += part.length;
          onPart();
          yield part;
        }
      };
      const body = Readable.toWeb(Readable.from(parts())) as FetchedResponse["body"];
      return { status: range ? 206 : 200, headers: new Headers(), body };
    };
    const store: Partial<Store> = {
      region: { name, bucket: name, provider: name } as Store["region"],
      get: (path, options) => get(path, options?.range),
      put: async (_path, body) => {
        for await (const part of body as Readable) if (part) onPart();
        return { etag: undefined };
      },
    };
    return store as Store;
  });
  const { signal } = new AbortController();
  const clock = systemClock;
  const context = { stores, signal, clock, random: () => 0, breaker: new Breaker(clock), trust: async () => {} };
  const encoder = {
    encode: async (data: Uint8Array<ArrayBuffer>, k: number, rows: readonly number[]) => {
      // The regions take what waits for them: of such shards, many fit into a queue.
      await others();
      return {
        data: Array.from({ length: k }, (_, i) => data.subarray((i * data.length) / k, ((i + 1) * data.length) / k)),
        parity: rows.map(() => SHARD),
      };
    },
  };
  const file = { read: async (target: Uint8Array) => target.fill(0).length, close: async () => {} };
  const upload = "0".repeat(32);
  const list = new LeafListUpload({ key: "zeros", upload, object, stores, needed: 4 }, context);
  const put = async (look: () => void): Promise<string> => {
    let at = 0;
    const onBytes = (): void => void (++at % (stripes * 3) === 0 && look());
    const input = { key: "zeros", upload, file, layout: object, expected: await sha256OfZeros(bytes), stores };
    const chunks = [...stores.keys()];
    const { sha256 } = await uploadChunks({ ...input, chunks, needed: 6, encoder, context, onBytes, list });
    return sha256;
  };
  const manifest = (sha256: string): Promise<Manifest> => {
    const name = { key: "zeros", generation: 1, upload, modified: "2026-01-02T03:04:05Z" };
    const places = { placement: REGIONS, leaves: REGIONS, requires: ["pages"] };
    const content = { sha256, contentType: "x/y", headers: {}, hashes: list.hashes };
    return sealManifest({ ...name, ...object, ...places, ...content }, nodeSha256);
  };
  return { put, manifest, context, watch: (look: () => void) => void (onPart = look) };
}

async function sha256OfZeros(bytes: number): Promise<string> {
  const hash = createHash("sha256");
  const part = Buffer.alloc(65_536);
  for (let left = bytes; left > 0; left -= part.length) hash.update(part.subarray(0, left));
  return hash.digest("hex");
}

/** The most memory of each step for an object of so many stripes. */
async function measured(stripes: number): Promise<Record<string, number>> {
  const object = await zeros(stripes);
  const growth: Record<string, number> = {};
  let sha256 = "";
  growth["put"] = await growthOf(async (look) => void (sha256 = await object.put(look)));
  const manifest = await object.manifest(sha256);
  const { context, watch } = object;
  const step = async (name: string, run: (look: () => void) => Promise<unknown>): Promise<void> => {
    growth[name] = await growthOf(async (look) => {
      watch(sampled(look, Math.ceil(stripes / 64)));
      await run(look);
      watch(() => {});
    });
  };
  await step("get", async (look) => {
    const passed = sampled(look, Math.ceil(stripes / 64));
    const parts = { ...context, config: {} as Config, codec: async () => javascriptCodec() };
    await getObject(manifest, undefined, async () => passed(), parts);
  });
  await step("verify", async () => {
    expect(await checkChunks(manifest, context)).toEqual([]);
    expect((await checkLeafLists(manifest, false, context)).map(({ code }) => code)).toEqual(
      REGIONS.map(() => undefined),
    );
  });
  await step("repair", async () => {
    const reader = new SalvageReader(manifest, { chunks: [0, 1, 2, 4, 5], width: 4 }, javascriptCodec(), context);
    await reader.drain();
    await reader.close();
    expect([...reader.damage]).toEqual([]);
  });
  return growth;
}

/** As many as an object of so many GiB has under stripes of 4 MiB. */
const stripesOf = (gib: number): number => gib * 256;

test("a put, a get, a verify and a repair take no more memory for 32 GiB than for 2 GiB", async () => {
  const [small, large] = [await measured(stripesOf(2)), await measured(stripesOf(32))];
  expect(Object.keys(large)).toEqual(["put", "get", "verify", "repair"]);
  // The hashes of a stripe take at least 800 bytes, so those of 7,680 more stripes would take 6 MB.
  for (const [name, bytes] of Object.entries(large)) expect(bytes - small[name]!, name).toBeLessThan(1_000_000);
});
