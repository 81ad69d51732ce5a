import { describe, expect, test } from "vitest";
import { LEAF_LIST, pageShape } from "../format/manifest/index.ts";
import { rejectionOf } from "../../test/errors.ts";
import type { Behaviour, FakeSource } from "../../test/fake-source.ts";
import { ReadWorld } from "../../test/read-world.ts";
import { sampleObject } from "../../test/objects/sample-object.ts";
import type { ChunkRequest } from "../sources/source.ts";
import { BlockMemory } from "./block-memory.ts";
import { StripeHashes } from "./stripe-hashes.ts";

/** 40 stripes of 4 + 2 chunks, chunk i in region r<i>, in pages of eight stripes. */
const shape = { k: 4, m: 2, bytes: 39 * 400 + 11, stripeBytes: 400 };
const object = await sampleObject({ ...shape, pageStripes: 8 });
/** The same with all hashes in its manifest. */
const flat = await sampleObject(shape);
/** Stripes whose shards have several blocks. */
const blocks = await sampleObject({ k: 2, m: 1, bytes: 3_000_000, stripeBytes: 1_000_000, pageStripes: 2 });

const pagesAsked = (world: ReadWorld) =>
  world.sources.flatMap(({ id, requests }) =>
    requests.filter(({ chunk }) => chunk === LEAF_LIST).map(({ stripe }) => `${id} ${stripe}`),
  );
/** A world in which regions do something else with the pages of hashes. */
const withPages = (behaviours: Readonly<Record<string, Behaviour>>) =>
  new ReadWorld(object, (id) => ({
    behaviour: ({ chunk }) => (chunk === LEAF_LIST ? (behaviours[id] ?? "serve") : "serve"),
  }));
const ALL = ["r0", "r1", "r2", "r3", "r4", "r5"];

describe("an object whose hashes are in pages", () => {
  test("is read whole, and asks for each page once", async () => {
    const world = new ReadWorld(object);
    expect(await world.read()).toEqual(object.bytes);
    expect(pagesAsked(world).map((asked) => asked.slice(3))).toEqual(["0", "8", "16", "24", "32"]);
  });

  test("takes one request more for its first byte than one whose manifest has them", async () => {
    const first = async (of: typeof object): Promise<number> => {
      const world = new ReadWorld(of);
      await world.clock.run(world.open({ windowBytes: 400 }));
      return world.requests();
    };
    expect(await first(object)).toBe((await first(flat)) + 1);
  });

  test("asks for the page and the chunks at the same time", async () => {
    const world = new ReadWorld(object);
    await world.clock.run(world.open({ windowBytes: 400 }));
    expect(new Set(world.sources.flatMap(({ requests }) => requests.map(({ at }) => at)))).toEqual(new Set([0]));
  });

  test("asks for the page of a range alone", async () => {
    const world = new ReadWorld(object);
    const range = { start: 20 * 400 + 3, end: 20 * 400 + 9 };
    expect(await world.read({ range })).toEqual(object.bytes.subarray(range.start, range.end));
    expect(pagesAsked(world)).toEqual(["r0 16"]);
  });

  test("has its page in memory for the next range", async () => {
    const world = new ReadWorld(object);
    const memory = new BlockMemory(100_000, world.clock);
    for (const start of [100, 500, 1_000, 3_000]) {
      const range = { start, end: start + 5 };
      expect(await world.read({ range, memory })).toEqual(object.bytes.subarray(start, start + 5));
    }
    expect(pagesAsked(world)).toHaveLength(1);
  });

  test("is read by blocks, whose leaves the page proves", async () => {
    for (const start of [0, 499_000, 999_990, 2_500_000]) {
      const world = new ReadWorld(blocks);
      const range = { start, end: start + 1000 };
      expect(await world.read({ range })).toEqual(blocks.bytes.subarray(start, start + 1000));
    }
  });

  test("is read without as many chunks as it can lose", async () => {
    const world = new ReadWorld(object, (_, i) => ({
      behaviour: ({ chunk }) => (i < 2 && chunk !== LEAF_LIST ? "missing" : "serve"),
    }));
    expect(await world.read()).toEqual(object.bytes);
    expect(world.sources[0]!.faults).not.toEqual([]);
  });
});

describe("a page of hashes that", () => {
  test.each<Behaviour>(["error", "missing", "corrupt", "truncate", "lengthen", "hang"])(
    "%s in two regions comes from another one",
    async (fault) => {
      const world = withPages({ r0: fault, r1: fault });
      expect(await world.read()).toEqual(object.bytes);
      expect(pagesAsked(world), "the fault fired").toContain("r0 0");
      expect(fault === "hang" || world.sources[0]!.faults.includes(fault)).toBe(true);
    },
  );

  test("is another page of the object comes from another region", async () => {
    const world = new ReadWorld(object);
    swap(world.sources[0]!);
    expect(await world.read()).toEqual(object.bytes);
    expect(pagesAsked(world), "the fault fired").toContain("r0 0");
    expect(pagesAsked(world)).toContain("r1 0");
  });

  test.each<Behaviour>(["error", "missing", "corrupt", "truncate", "lengthen"])(
    "%s in all regions ends the read without a byte",
    async (fault) => {
      const world = withPages(Object.fromEntries(ALL.map((id) => [id, fault])));
      const error = await rejectionOf(world.read());
      expect(error.code).toBe("NOT_ENOUGH_CHUNKS");
      for (const { id, faults } of world.sources) expect(faults, id).toContain(fault);
    },
  );

  test("is late delays no stripe of a page that is there", async () => {
    const world = new ReadWorld(object, () => ({
      ms: ({ stripe, chunk }) => (chunk === LEAF_LIST && stripe.index === 8 ? 900 : 50),
    }));
    const { body } = await world.clock.run(world.open());
    const reader = body.getReader();
    for (let stripe = 0; stripe < 8; stripe++) {
      for (let chunk = 0; chunk < 4; chunk++) await world.clock.run(reader.read());
    }
    expect(world.clock.now()).toBeLessThan(900);
    await world.clock.run(reader.cancel());
  });
});

test("a page that a stripe asked for which was given up is there for the others", async () => {
  const { chunkOffset, shardBytes } = pageShape({ ...object.manifest, pageStripes: 8 }, 0);
  const page = object.leafList.subarray(chunkOffset, chunkOffset + shardBytes);
  let reads = 0;
  const hashes = new StripeHashes(object.manifest, (_page, _shape, signal) => {
    reads++;
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason as Error));
      if (reads === 2) resolve(page);
    });
  });
  const stop = new AbortController();
  const given = hashes.of(0, stop.signal);
  const other = hashes.of(1, new AbortController().signal);
  stop.abort(new Error("given up"));
  await expect(given).rejects.toThrow("given up");
  expect(await other).toEqual(page.subarray(192, 384));
  expect(reads).toBe(2);
});

/** Makes a source answer each request for a page with the next one, as a bucket would whose names are mixed up. */
function swap(source: FakeSource): void {
  const fetch = source.fetch.bind(source);
  source.fetch = async (request: ChunkRequest) => {
    const bytes = await fetch(request);
    if (request.chunk !== LEAF_LIST || request.stripe.index >= 24) return bytes;
    const next = pageShape({ ...object.manifest, pageStripes: 8 }, request.stripe.index / 8 + 1);
    return object.leafList.subarray(next.chunkOffset, next.chunkOffset + next.shardBytes);
  };
}
