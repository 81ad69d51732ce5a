import { blockBytesOf, chunkName, LEAF_LIST, type Manifest } from "@agarose/core/format";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  POP,
  putCached,
  randomBytes,
  readBundle,
  readFromCache,
  readObject,
  REGIONS,
  startWorld,
  type TestWorld,
} from "../../../test/world.ts";

let world: TestWorld;
let uncached: Manifest;
let version: string;

beforeAll(async () => {
  world = await startWorld();
  version = await putCached(world, "page", newContent());
  uncached = await world.put("new", newContent());
});
afterAll(() => world.close());

/** Four stripes, different each time: objects of equal content share a version. */
let seed = 0;
function newContent(): Uint8Array {
  return randomBytes(200_000, ++seed);
}

describe("the bundle", () => {
  test("of an object that is not cached is a plan and an end", async () => {
    const { plan, frames } = await readBundle(`${world.url}/v1/read/new`, "new");
    const { version: current } = uncached;
    expect(plan).toMatchObject({ pop: "fra", version: current, cached: [], delta: 1, manifest: uncached });
    expect(plan.regions.map(({ url }) => url)).toContain("http://public.invalid/r0");
    expect(frames.map(({ type }) => type)).toEqual(["end"]);
  });

  test("of a cached object has the promised chunks of the stripes asked for, in order", async () => {
    const { plan, frames } = await readBundle(`${world.url}/v1/read/page?version=${version}&from=1&to=2`, "page");
    expect(plan.manifest).toBeUndefined();
    expect(plan.epoch).toBe(1);
    expect(plan.cached).toHaveLength(4);
    const chunks = frames.slice(0, -1);
    expect(chunks.map(({ type, stripe, chunk }) => [type, stripe, chunk])).toEqual(
      [1, 2].flatMap((stripe) => plan.cached.map((chunk) => ["chunk", stripe, chunk])),
    );
    expect(chunks.every(({ payload }) => payload.length === 16_384)).toBe(true);
  });

  test("sends the new manifest to a client that knows an old version", async () => {
    const { plan } = await readBundle(`${world.url}/v1/read/new?version=${"0".repeat(32)}`, "new");
    expect(plan.manifest).toEqual(uncached);
  });

  test("sends a newer manifest of the same version, and none to a client that has a newer one", async () => {
    const planAt = async (generation: number) =>
      (await readBundle(`${world.url}/v1/read/page?version=${version}&generation=${generation}`, "page")).plan;
    expect((await planAt(0)).manifest).toMatchObject({ version, generation: 1 });
    expect((await planAt(1)).manifest).toBeUndefined();
    expect((await planAt(2)).manifest).toBeUndefined();
  });

  test("beyond the last stripe is a plan and an end", async () => {
    const { frames } = await readBundle(`${world.url}/v1/read/page?from=99`, "page");
    expect(frames.map(({ type }) => type)).toEqual(["end"]);
  });

  test.each(["from=x", "from=-1", "to=1e3", "from=3&to=2"])("with %s is refused", async (query) => {
    const response = await fetch(`${world.url}/v1/read/page?${query}`);
    expect(response.status).toBe(400);
    expect(response.headers.get("x-agarose-error")).toBe("REQUEST_INVALID");
  });

  test("of an unknown key is 404 with a code", async () => {
    const response = await fetch(`${world.url}/v1/read/nothing`);
    expect(response.status).toBe(404);
    expect(response.headers.get("x-agarose-error")).toBe("OBJECT_NOT_FOUND");
  });
});

describe("the bundle of a small range", () => {
  /** Shards of three blocks and a part of one. */
  const code = { stripeBytes: 800_000 };
  const BLOCK_BYTES = blockBytesOf({ ...code, bytes: 800_000, k: 4 });
  const range = { start: 70_000, end: 70_100 };
  const query = `range=bytes%3D${range.start}-${range.end - 1}`;

  test("of an object that is not cached has leaves and blocks, from the buckets once", async () => {
    const content = randomBytes(1_000_000, 77);
    const manifest = await world.put("leaves", content, code);
    const stored = world.buckets.objects.get(`r3/${chunkName("leaves", manifest.upload, LEAF_LIST)}`)!;
    for (const isFirst of [true, false]) {
      world.buckets.requests.length = 0;
      const { frames } = await readBundle(`${world.url}/v1/read/leaves?${query}`, "leaves");
      expect(frames.map(({ type, stripe, chunk }) => [type, stripe, chunk])).toEqual([
        ["chunk", 0, LEAF_LIST],
        ["chunk", 0, 0],
        ["end", 0, 0],
      ]);
      expect(frames[0]!.payload).toEqual(stored.subarray(0, 6 * 4 * 32));
      expect(frames[1]!.payload).toEqual(content.subarray(BLOCK_BYTES, 2 * BLOCK_BYTES));
      const asked = world.buckets.requests.filter(({ name }) => name.startsWith("chunks/"));
      // A bucket that is late is replaced, so there may be more.
      expect(asked.length >= 2).toBe(isFirst);
      expect(asked.length > 0).toBe(isFirst);
    }
  });

  test("of a cached object has the blocks alone, decoded if another chunk has them", async () => {
    const content = randomBytes(1_000_000, 78);
    const cached = await putCached(world, "blocks", content, code);
    for (const chunk of [0, 1, 2, 3]) {
      const start = chunk * 200_000 + range.start;
      const asked = `range=bytes%3D${start}-${start + 99}`;
      const { plan, frames } = await readBundle(`${world.url}/v1/read/blocks?version=${cached}&${asked}`, "blocks");
      expect(plan.cached).toHaveLength(4);
      expect(frames.map((frame) => [frame.type, frame.chunk])).toEqual([
        ["chunk", LEAF_LIST],
        ["chunk", chunk],
        ["end", 0],
      ]);
      const block = chunk * 200_000 + BLOCK_BYTES;
      expect(frames[1]!.payload).toEqual(content.subarray(block, block + BLOCK_BYTES));
    }
  });

  test("has a miss if no bucket has the leaves", async () => {
    const manifest = await world.put("no leaves", randomBytes(1_000_000, 79), code);
    for (const region of REGIONS) {
      const name = `${region}/${chunkName("no leaves", manifest.upload, LEAF_LIST)}`;
      expect(world.buckets.objects.delete(name)).toBe(true);
    }
    const { frames } = await readBundle(`${world.url}/v1/read/no%20leaves?${query}`, "no leaves");
    expect(frames.map(({ type, chunk }) => [type, chunk])).toEqual([
      ["miss", LEAF_LIST],
      ["chunk", 0],
      ["end", 0],
    ]);
  });

  test("has the blocks of a region that is down, decoded from k others", async () => {
    const content = randomBytes(1_000_000, 80);
    const { placement } = await world.put("down", content, code);
    world.buckets.faults.set(placement[1]!, { down: true });
    try {
      const start = 200_000 + range.start;
      const { frames } = await readBundle(`${world.url}/v1/read/down?range=bytes%3D${start}-${start + 99}`, "down");
      expect(frames.map(({ type, chunk }) => [type, chunk])).toEqual([
        ["chunk", LEAF_LIST],
        ["chunk", 1],
        ["end", 0],
      ]);
      const block = 200_000 + BLOCK_BYTES;
      expect(frames[1]!.payload).toEqual(content.subarray(block, block + BLOCK_BYTES));
      expect(world.buckets.fired.get(placement[1]!)).toBeGreaterThan(0);
    } finally {
      world.buckets.faults.clear();
    }
  });

  test("has the padding of the last block, and both pieces of a range in two shards", async () => {
    const content = randomBytes(799_999, 81);
    await world.put("padded", content, code);
    for (const [first, last, chunks] of [
      [799_900, 799_998, [3]],
      [199_990, 200_010, [0, 1]],
    ] as const) {
      const { frames } = await readBundle(`${world.url}/v1/read/padded?range=bytes%3D${first}-${last}`, "padded");
      const blocks = frames.filter(({ type, chunk }) => type === "chunk" && chunk !== LEAF_LIST);
      expect(blocks.map(({ chunk }) => chunk)).toEqual(chunks);
      const padded = Buffer.concat([content, Buffer.alloc(1)]);
      for (const { chunk, payload } of blocks) {
        const from = chunk * 200_000 + (chunk === 1 ? 0 : 3 * BLOCK_BYTES);
        expect(payload).toEqual(
          new Uint8Array(padded.subarray(from, chunk === 1 ? from + BLOCK_BYTES : (chunk + 1) * 200_000)),
        );
      }
    }
  });

  test("has no blocks of a range that is not brief", async () => {
    await world.put("long", randomBytes(1_000_000, 82), code);
    const { frames } = await readBundle(`${world.url}/v1/read/long?range=bytes%3D0-${2 * BLOCK_BYTES}`, "long");
    expect(frames.map(({ type, chunk }) => [type, chunk])).toEqual([
      ["chunk", LEAF_LIST],
      ["end", 0],
    ]);
  });

  test.each(["range=bytes%3D900000000-", "range=nonsense"])(
    "that is none (%s) is the bundle without it",
    async (none) => {
      const { frames } = await readBundle(`${world.url}/v1/read/page?from=1&to=1&${none}`, "page");
      expect(frames.map(({ type }) => type)).toEqual(["chunk", "chunk", "chunk", "chunk", "end"]);
    },
  );
});

const valueOf = async (name: string): Promise<Uint8Array> =>
  new Uint8Array((await (await world.kv()).get(name, "arrayBuffer"))!);

describe("a cache value", () => {
  test.each([
    ["empty", () => new Uint8Array(0)],
    ["truncated", (value: Uint8Array) => value.subarray(0, value.length - 1)],
    ["no frames at all", () => new TextEncoder().encode("<html>not a chunk</html>")],
  ])("that is %s is a miss, the read goes elsewhere, and the next period replaces it", async (key, change) => {
    const content = newContent();
    const name = `chunks:${await putCached(world, key, content)}:1`;
    const intact = await valueOf(name);
    await (await world.kv()).put(name, change(intact).slice().buffer);
    const url = `${world.url}/v1/read/${encodeURIComponent(key)}`;
    const { plan, frames } = await readBundle(url, key);
    const missed = frames.filter(({ type }) => type === "miss");
    expect(missed.map(({ stripe, chunk }) => [stripe, chunk])).toEqual(plan.cached.map((chunk) => [1, chunk]));
    expect((await world.status()).isolate.chunkCache.malformed).toBeGreaterThan(0);
    expect((await readObject(world, encodeURIComponent(key))).bytes).toEqual(content);
    await world.pops.cron(POP);
    expect(await valueOf(name)).toEqual(intact);
  });

  test("that is gone is a miss, and the next period puts it back", async () => {
    const name = `chunks:${await putCached(world, "gone", newContent())}:2`;
    const intact = await valueOf(name);
    await (await world.kv()).delete(name);
    const { frames } = await readBundle(`${world.url}/v1/read/gone`, "gone");
    expect(frames.filter(({ type }) => type === "miss")).toHaveLength(4);
    await world.pops.cron(POP);
    expect(await valueOf(name)).toEqual(intact);
  });

  test("with wrong bytes does not spoil a read, and the next period replaces it", async () => {
    const content = newContent();
    const name = `chunks:${await putCached(world, "wrong", content)}:0`;
    const intact = await valueOf(name);
    await (await world.kv()).put(name, intact.map((byte, i) => (i === 100 ? byte ^ 1 : byte)).buffer);
    expect(await readObject(world, "wrong")).toEqual({ kind: "degraded", bytes: content });
    await world.pops.cron(POP);
    expect(await valueOf(name)).toEqual(intact);
    await readFromCache(world, "wrong", content);
  });
});
