import * as fc from "fast-check";
import { expect, test } from "vitest";
import { rejectionOf } from "../../test/errors.ts";
import type { Behaviour, FakeSource } from "../../test/fake-source.ts";
import { referenceCodec } from "../../test/objects/reference-codec.ts";
import { object, StripeWorld } from "../../test/stripe-world.ts";

const { k } = object.manifest;

test("functional chunks complete a read, which returns the k data shards", async () => {
  const world = new StripeWorld({ ms: [50, 60, 500, 500, 500, 500] });
  const caches = cachesOf(world, [6, 9]);
  const shards = await world.read({ sources: [...caches, ...world.sources.slice(0, 6)] });
  expectData(shards);
  expect(world.clock.now()).toBe(60);
  expect(world.outcomes()["used"]).toEqual(["c6", "c9", "r0", "r1"]);
  world.expectClean();
});

test("k functional chunks alone deliver a whole stripe", async () => {
  const world = new StripeWorld();
  expectData(await world.read({ sources: cachesOf(world, [6, 7, 8, 9]) }));
  expect(world.requests()).toBe(4);
});

test("the codec is not loaded if k chunks with hashes come first", async () => {
  const world = new StripeWorld({ ms: [5, 6, 7, 8, 500, 500] });
  const caches = cachesOf(world, [6], { ms: 50, latency: { meanMs: 1, sdMs: 0 } });
  const shards = await world.read({ sources: [...caches, ...world.sources], delta: 1, codec: noCodec });
  expect([...shards.keys()]).toEqual([0, 1, 2, 3]);
  expect(world.outcomes()["cancelled"]).toEqual(["c6"]);
});

test("one more chunk, requested at once, shows which functional chunk is corrupt; the others are used", async () => {
  const world = new StripeWorld();
  const caches = cachesOf(world, [6, 7], { behaviour: ({ chunk }) => (chunk === 7 ? "corrupt" : "serve") });
  const shards = await world.read({ sources: [...caches, ...world.sources.slice(0, 6)], delta: 0, hedge: false });
  expectShards(shards);
  expect(caches[1]!.faults).toEqual(["corrupt"]);
  expect(world.failures()).toEqual(["c7 CHUNK_CORRUPT"]);
  expect(world.outcomes()["used"]).toEqual(["c6", "r0", "r1", "r2"]);
  expect(world.startsAt(100)).toEqual(["r2"]);
  expect(world.clock.now()).toBe(200);
  world.expectClean();
});

test("all functional chunks of a proof are dropped if one more chunk does not help: several are corrupt", async () => {
  const world = new StripeWorld();
  const caches = cachesOf(world, [6, 7, 8], { behaviour: ({ chunk }) => (chunk === 7 ? "serve" : "corrupt") });
  const shards = await world.read({ sources: [...caches, ...world.sources.slice(0, 6)], delta: 0, hedge: false });
  expectShards(shards);
  expect(caches.flatMap(({ faults }) => faults)).toEqual(["corrupt", "corrupt"]);
  expect(world.failures()).toEqual(["c6 CHUNK_CORRUPT", "c7 CHUNK_CORRUPT", "c8 CHUNK_CORRUPT"]);
  expect([100, 200].map((ms) => world.startsAt(ms))).toEqual([["r1"], ["r2", "r3"]]);
  expect(world.clock.now()).toBe(300);
  world.expectClean();
});

test("without another chunk all are dropped, and other sources are asked for the same chunks", async () => {
  const world = new StripeWorld();
  const bad = cachesOf(world, [6, 7], { behaviour: ({ chunk }) => (chunk === 7 ? "corrupt" : "serve") });
  const good = world.add({ id: "peer", kind: "peer", chunks: [6, 7], ms: 20 });
  expectData(await world.read({ sources: [...bad, good, ...world.sources.slice(0, 2)], hedge: false }));
  expect(world.failures()).toEqual(["c6 CHUNK_CORRUPT", "c7 CHUNK_CORRUPT"]);
  expect(world.outcomes()["used"]).toEqual(["r0", "r1", "peer", "peer"]);
  world.expectClean();
});

test("of s functional chunks, one corrupt costs 1 request, several cost s, with 1 + s decodes at most (property)", async () => {
  const seen = { none: 0, one: 0, several: 0 };
  const rows = fc.subarray([6, 7, 8, 9], { minLength: 1 });
  const times = fc.array(fc.integer({ min: 10, max: 200 }), { minLength: 6, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(rows, fc.subarray([6, 7, 8, 9]), times, async (cached, spoiled, ms) => {
      const world = new StripeWorld({ ms });
      const behaviour = ({ chunk }: { chunk: number }): Behaviour => (spoiled.includes(chunk) ? "corrupt" : "serve");
      const caches = cachesOf(world, cached, { ms: 1, behaviour });
      let decodes = 0;
      const reconstruct: typeof referenceCodec.reconstruct = (...shards) => {
        decodes++;
        return referenceCodec.reconstruct(...shards);
      };
      const sources = [...caches, ...world.sources.slice(0, 6)];
      const codec = async () => ({ reconstruct });
      expectShards(await world.read({ sources, delta: 0, hedge: false, codec }));
      const corrupt = cached.filter((chunk) => spoiled.includes(chunk));
      expect(caches.flatMap(({ faults }) => faults)).toEqual(corrupt.map(() => "corrupt"));
      const several = corrupt.length > 1;
      seen[several ? "several" : corrupt.length === 1 ? "one" : "none"]++;
      expect(world.requests() - k).toBe(several ? cached.length : corrupt.length);
      const dropped = several ? cached : corrupt;
      expect(world.failures().toSorted()).toEqual(dropped.map((chunk) => `c${chunk} CHUNK_CORRUPT`));
      expect(decodes).toBeLessThanOrEqual(1 + cached.length);
      world.expectClean();
    }),
    { numRuns: 400 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(10);
});

test("the same chunk of another source is tried after a corrupt one", async () => {
  const world = new StripeWorld();
  const bad = cachesOf(world, [6], { behaviour: () => "corrupt" });
  const good = world.add({ id: "peer", kind: "peer", chunks: [6], ms: 20 });
  const sources = [...bad, good, ...world.sources.slice(0, 3)];
  expectData(await world.read({ sources, hedge: false }));
  expect(bad[0]!.faults).toEqual(["corrupt"]);
  expect(world.outcomes()["used"]).toContain("peer");
});

test("a functional chunk of a wrong length is dropped before it is decoded", async () => {
  const world = new StripeWorld();
  const caches = cachesOf(world, [6], { behaviour: () => "truncate" });
  expectShards(await world.read({ sources: [...caches, ...world.sources.slice(0, 6)] }));
  expect(caches[0]!.faults).toEqual(["truncate"]);
  expect(world.failures()).toEqual(["c6 CHUNK_WRONG_LENGTH"]);
});

test("a read that only a corrupt chunk could complete fails with that reason", async () => {
  const world = new StripeWorld();
  const caches = cachesOf(world, [6], { behaviour: () => "corrupt" });
  const error = await rejectionOf(world.read({ sources: [...caches, ...world.sources.slice(0, 3)] }));
  expect(error).toMatchObject({ code: "NOT_ENOUGH_CHUNKS", details: { needed: 4, available: 3, received: 3 } });
  expect(error.message).toContain("c6 CHUNK_CORRUPT");
  world.expectClean();
});

test("the codec's failure is the read's", async () => {
  const world = new StripeWorld();
  const error = await rejectionOf(world.read({ sources: cachesOf(world, [6, 7, 8, 9]), codec: noCodec }));
  expect(error).toMatchObject({ code: "INTERNAL", message: "no such module" });
  world.expectClean();
});

test("a read that is aborted during a proof ends every request", async () => {
  const world = new StripeWorld();
  const abort = new AbortController();
  const read = rejectionOf(
    world.start({ sources: cachesOf(world, [6, 7, 8, 9]), codec: hangingCodec, signal: abort.signal }),
  );
  await world.clock.advance(100);
  abort.abort();
  expect((await read).code).toBe("ABORTED");
  expect(world.outcomes()["unused"]).toHaveLength(4);
  world.expectClean();
});

test("any mixture of sound, lost and corrupt chunks results in the data or an error (property)", async () => {
  const seen = { data: 0, error: 0, dropped: 0 };
  const behaviours = fc.array(fc.constantFrom<Behaviour>("serve", "serve", "corrupt", "error", "missing", "truncate"), {
    minLength: 10,
    maxLength: 10,
  });
  const times = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 10, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(behaviours, times, fc.integer({ min: 0, max: 3 }), async (behaviour, ms, delta) => {
      const world = new StripeWorld({ ms, behaviours: Object.fromEntries(behaviour.map((b, i) => [`r${i}`, b])) });
      const caches = [6, 7, 8, 9].flatMap((chunk) =>
        cachesOf(world, [chunk], { ms: ms[chunk]!, behaviour: () => behaviour[chunk]! }),
      );
      const result = await world
        .read({ sources: [...caches, ...world.sources.slice(0, 6)], delta })
        .catch((error: unknown) => error);
      const sound = behaviour.map((b) => b === "serve");
      const exact = sound.slice(0, 6).filter(Boolean).length;
      const deceivers = behaviour.slice(6).filter((b) => b === "corrupt").length;
      if (result instanceof Map) {
        seen.data++;
        expectShards(result as Map<number, Uint8Array>);
      } else {
        seen.error++;
        expect(result).toMatchObject({ code: "NOT_ENOUGH_CHUNKS" });
        expect(exact).toBeLessThan(k);
        // One that deceives is found whatever else is lost; of more, sound ones may be dropped with them.
        if (deceivers <= 1) expect(sound.filter(Boolean).length).toBeLessThan(k);
      }
      if (world.failures().some((failure) => /^c. CHUNK_CORRUPT/.test(failure))) seen.dropped++;
      world.expectClean();
    }),
    { numRuns: 400 },
  );
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(10);
});

const noCodec = (): Promise<never> => Promise.reject(new TypeError("no such module"));
const hangingCodec = (): Promise<never> => new Promise(() => {});

/** A cache for each functional chunk, named after it. */
function cachesOf(
  world: StripeWorld,
  chunks: readonly number[],
  options: Partial<Parameters<StripeWorld["add"]>[0]> = {},
): FakeSource[] {
  return chunks.map((chunk) => world.add({ id: `c${chunk}`, kind: "edge", chunks: [chunk], ms: 10, ...options }));
}

/** k shards, each of them what the manifest says. */
function expectShards(shards: ReadonlyMap<number, Uint8Array>): void {
  expect(shards.size).toBe(k);
  for (const [chunk, bytes] of shards) expect(bytes).toEqual(object.shard(0, chunk));
}

function expectData(shards: ReadonlyMap<number, Uint8Array>): void {
  expect([...shards.keys()]).toEqual([0, 1, 2, 3]);
  expectShards(shards);
}
