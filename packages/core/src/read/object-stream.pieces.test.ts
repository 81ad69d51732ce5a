import { describe, expect, test } from "vitest";
import { BLOCK_BYTES } from "../format/hash-tree.ts";
import { LEAF_LIST, stripeShape } from "../format/manifest/index.ts";
import { ReadWorld } from "../../test/read-world.ts";
import { rejectionOf } from "../../test/errors.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";
import { BlockMemory } from "./block-memory.ts";
import { piecesOf, wholeName } from "./pieces.ts";

/** Two stripes of 4 + 2 chunks, chunk i in region r<i>. A shard of the first has 10 blocks and a part of one. */
const shape = { k: 4, m: 2, stripeBytes: 1_400_000, bytes: 2_000_000 };
const object = await sampleObject({ ...shape, leaves: true });
const old = await sampleObject(shape);
const KIB = 1024;
const { shardBytes } = stripeShape(object.manifest, 0);

const rangeAt = (start: number, bytes: number) => ({ start, end: start + bytes });
const asked = (world: ReadWorld) =>
  world.sources
    .flatMap((source) => source.requests.map(({ chunk, bytes }) => ({ source: source.id, chunk, bytes })))
    .filter(({ chunk }) => chunk !== LEAF_LIST);

describe("a small range", () => {
  test("requests one block of one chunk, and the leaf list of one region", async () => {
    const world = new ReadWorld(object);
    const range = rangeAt(shardBytes + 70_000, 4 * KIB);
    expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
    expect(asked(world)).toEqual([{ source: "r1", chunk: 1, bytes: BLOCK_BYTES }]);
    expect(world.requests()).toBe(2);
    expect(world.codecLoads).toBe(0);
  });

  test("that crosses from one chunk to the next asks both for their own blocks", async () => {
    const world = new ReadWorld(object);
    const range = rangeAt(2 * shardBytes - 100, 200);
    expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
    const last = shardBytes % BLOCK_BYTES;
    expect(asked(world)).toEqual([
      { source: "r1", chunk: 1, bytes: last },
      { source: "r2", chunk: 2, bytes: BLOCK_BYTES },
    ]);
  });

  test("is read from any stripe, at any place and length", async () => {
    for (let start = 0; start < shape.bytes; start += 277_777) {
      for (const bytes of [1, 16 * KIB, 64 * KIB, 300_000]) {
        const world = new ReadWorld(object);
        const range = { start, end: Math.min(start + bytes, shape.bytes) };
        expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
      }
    }
  });

  test("that ends with a whole stripe is read by pieces of both stripes", async () => {
    const world = new ReadWorld(object);
    const range = { start: 1_400_000 - BLOCK_BYTES, end: shape.bytes };
    expect(piecesOf(object.manifest, range)).toHaveLength(5);
    expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
  });

  test("that crosses from one stripe to the next has no byte of the padding between them", async () => {
    const odd = await sampleObject({ ...shape, stripeBytes: shape.stripeBytes - 1, leaves: true });
    const world = new ReadWorld(odd);
    const range = rangeAt(odd.manifest.stripeBytes - 100, 200);
    expect(await world.read({ range })).toEqual(odd.bytes.subarray(range.start, range.end));
  });

  test("asks for whole shards if the object has no leaf list", async () => {
    const world = new ReadWorld(old);
    const range = rangeAt(100, 16 * KIB);
    expect(await world.read({ range })).toEqual(old.bytes.subarray(range.start, range.end));
    expect(asked(world)).toEqual([{ source: "r0", chunk: 0, bytes: shardBytes }]);
  });

  test.each(["missing", "corrupt", "truncate"] as const)(
    "asks for whole shards if every leaf list is in trouble (%s)",
    async (trouble) => {
      const world = new ReadWorld(object, () => ({
        behaviour: ({ chunk }) => (chunk === LEAF_LIST ? trouble : "serve"),
      }));
      const range = rangeAt(100, 16 * KIB);
      expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
      expect(world.sources.every(({ faults }) => faults.includes(trouble))).toBe(true);
      expect(asked(world).at(-1)).toMatchObject({ bytes: shardBytes });
    },
  );

  test("of most of the bytes reads whole stripes", () => {
    expect(piecesOf(object.manifest, { start: 0, end: shape.bytes })).toBeUndefined();
    expect(piecesOf(object.manifest, { start: 1000, end: 900_000 })).toBeUndefined();
    expect(piecesOf(object.manifest, { start: 1000, end: 500_000 })).toHaveLength(2);
  });
});

describe("a small object in memory", () => {
  const code = { k: 2, m: 1, stripeBytes: 400_000 };
  const memoryOf = (world: ReadWorld): BlockMemory => new BlockMemory(1_000_000, world.clock);

  test.each([
    ["whole copies", { ...code, k: 1, bytes: 60_000 }],
    ["several data chunks", { ...code, bytes: 120_001 }],
  ])("of %s costs no request when it or a range of it is read again", async (_code, one) => {
    const small = await sampleObject(one);
    const world = new ReadWorld(small);
    const memory = memoryOf(world);
    expect(await world.read({ memory })).toEqual(small.bytes);
    const first = world.requests();
    expect(await world.read({ memory })).toEqual(small.bytes);
    for (const range of [rangeAt(0, 1), rangeAt(59_000, 1_000), rangeAt(30_000, 20_000)]) {
      expect(await world.read({ memory, range })).toEqual(small.bytes.subarray(range.start, range.end));
    }
    expect(world.requests()).toBe(first);
  });

  test("is fetched whole by a range that no few shards have, and concurrent reads share it", async () => {
    const small = await sampleObject({ ...code, k: 1, bytes: 60_000 });
    const world = new ReadWorld(small);
    const memory = memoryOf(world);
    const reads = [world.read({ memory, range: rangeAt(500, 100), delta: 0 }), world.read({ memory, delta: 0 })];
    const [part, whole] = await Promise.all(reads);
    expect(part).toEqual(small.bytes.subarray(500, 600));
    expect(whole).toEqual(small.bytes);
    expect(world.requests()).toBe(1);
  });

  test("is not kept when it is longer, of several stripes, or wrong", async () => {
    for (const other of [
      { ...code, bytes: 140_000 },
      { ...code, stripeBytes: 50_000, bytes: 100_000 },
    ]) {
      const longer = await sampleObject(other);
      const world = new ReadWorld(longer);
      const memory = memoryOf(world);
      await world.read({ memory });
      expect(memory.holds([wholeName(longer.manifest)])).toBe(false);
    }
    const small = await sampleObject({ ...code, bytes: 60_000 });
    const world = new ReadWorld(small, () => ({ behaviour: () => "corrupt" }));
    const memory = memoryOf(world);
    expect(await rejectionOf(world.read({ memory }))).toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
    expect(world.sources.flatMap(({ faults }) => faults)).toContain("corrupt");
    expect(memory.holds([wholeName(small.manifest)])).toBe(false);
  });
});

describe("when the chunk of a small range", () => {
  const range = rangeAt(70_000, 4 * KIB);

  test.each(["error", "missing", "corrupt", "truncate", "lengthen"] as const)(
    "is in trouble (%s), the same block of k others replaces it",
    async (trouble) => {
      const world = new ReadWorld(object, (id) => ({
        latency: { meanMs: 100, sdMs: 30 },
        behaviour: ({ chunk }) => (id === "r0" && chunk === 0 ? trouble : "serve"),
      }));
      expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
      expect(world.sources[0]!.faults).toEqual([trouble]);
      // k + 1 requests, each for one block.
      expect(asked(world).map(({ bytes }) => bytes)).toEqual(Array.from({ length: 5 }, () => BLOCK_BYTES));
    },
  );

  test.each([
    ["first", 0],
    ["middle", 1 / 2],
    ["last", 1 - 1e-6],
  ])(
    "has a wrong byte in the %s of its blocks, the same blocks of k others replace them",
    async (_which, corruptAt) => {
      const blocks = rangeAt(BLOCK_BYTES, 3 * BLOCK_BYTES);
      const world = new ReadWorld(object, (id) => ({
        latency: { meanMs: 100, sdMs: 30 },
        behaviour: ({ chunk }) => (id === "r0" && chunk === 0 ? "corrupt" : "serve"),
        corruptAt,
      }));
      expect(await world.read({ range: blocks })).toEqual(object.bytes.subarray(blocks.start, blocks.end));
      expect(world.sources[0]!.faults).toEqual(["corrupt"]);
      expect(asked(world).map(({ bytes }) => bytes)).toEqual(Array.from({ length: 5 }, () => 3 * BLOCK_BYTES));
    },
  );

  test("is late, the same block of k others replaces it", async () => {
    const world = new ReadWorld(object, (id) => ({
      ms: ({ chunk }) => (id === "r0" && chunk === 0 ? 60_000 : 100),
      latency: { meanMs: 100, sdMs: 30 },
    }));
    expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
    expect(world.clock.now()).toBeLessThan(1_000);
    expect(asked(world)).toHaveLength(5);
    const late = world.sources[0]!.requests.find(({ chunk }) => chunk === 0);
    expect(late?.signal.aborted).toBe(true);
  });

  test("fails, a read without a fallback fails, and asks no others", async () => {
    const world = new ReadWorld(object, (id) => ({
      behaviour: ({ chunk }) => (id === "r0" && chunk === 0 ? "error" : "serve"),
    }));
    const read = world.read({ range, fallback: "none" });
    expect(await rejectionOf(read)).toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
    expect(asked(world)).toEqual([{ source: "r0", chunk: 0, bytes: BLOCK_BYTES }]);
  });

  test.each([
    ["has come", Promise.resolve(), 1],
    ["has failed", Promise.resolve(false), 5],
    ["is still to come", new Promise<void>(() => {}), 5],
  ])("is late, a read without a fallback gives up if an update of a source %s", async (_, updated, requests) => {
    const world = new ReadWorld(object, (id) => ({
      ms: ({ chunk }) => (id === "r0" && chunk === 0 ? 60_000 : 100),
      latency: { meanMs: 100, sdMs: 30 },
      ...(id === "r5" && { updated }),
    }));
    const read = world.read({ range, fallback: "none" });
    if (requests === 1) expect(await rejectionOf(read)).toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
    else expect(await read).toEqual(object.bytes.subarray(range.start, range.end));
    expect(world.clock.now()).toBeLessThan(1_000);
    expect(asked(world)).toHaveLength(requests);
  });

  test("is down and known to be, only others are asked", async () => {
    const world = new ReadWorld(object, (id) => (id === "r0" ? { latency: { meanMs: 5_000, sdMs: 0 } } : {}));
    expect(await world.read({ range, delta: 0 })).toEqual(object.bytes.subarray(range.start, range.end));
    expect(asked(world).map(({ source }) => source)).toEqual(["r1", "r2", "r3", "r4"]);
  });

  test("has a wrong leaf list in the nearest region, another region's is used", async () => {
    const world = new ReadWorld(object, (id, i) => ({
      latency: { meanMs: 100 + i, sdMs: 30 },
      behaviour: ({ chunk }) => (id === "r0" && chunk === LEAF_LIST ? "corrupt" : "serve"),
    }));
    expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
    expect(world.sources[0]!.faults).toEqual(["corrupt"]);
    expect(asked(world)).toEqual([{ source: "r0", chunk: 0, bytes: BLOCK_BYTES }]);
  });

  test("and too many others are lost, the read fails", async () => {
    const lost = ["r0", "r1", "r2"];
    const world = new ReadWorld(object, (id) => ({
      behaviour: ({ chunk }) => (lost.includes(id) && chunk !== LEAF_LIST ? "error" : "serve"),
    }));
    const error = await rejectionOf(world.read({ range }));
    expect(error).toMatchObject({ code: "NOT_ENOUGH_CHUNKS", details: { needed: 4, available: 3 } });
    expect(world.sources[0]!.faults.length).toBeGreaterThan(0);
  });
});
