import { describe, expect, test } from "vitest";
import type { RegionEstimate } from "../options/sources.ts";
import type { CachedObject, ObjectShape } from "./object-shape.ts";
import { Planner } from "./planner.ts";
import type { CachePlan, PlanInput, PlannerOptions, PlannerState } from "./plan.ts";
import { holdRegions } from "../options/sources.ts";
import { sampleCounts } from "../policy/replay.ts";

/** Table I of Agar: six regions as seen from Frankfurt. */
const LATENCY_MS = { frankfurt: 80, dublin: 200, virginia: 600, saoPaulo: 1400, tokyo: 3400, sydney: 4600 };
const names = Object.keys(LATENCY_MS);
const regions: RegionEstimate[] = Object.entries(LATENCY_MS).map(([name, meanMs]) => {
  return { name, meanMs, sdMs: 0, down: false };
});
const CHUNK_BYTES = 100_000;
const WHOLE = [0, 1, 2, 3, 4, 5, 6, 7, 8];

const shape = (key: string, changes: Partial<ObjectShape> = {}): ObjectShape => ({
  key,
  version: `${key}-1`,
  k: 9,
  m: 3,
  placement: Array.from({ length: 12 }, (_, chunk) => names[chunk % 6]!),
  stripes: 1,
  chunkBytes: CHUNK_BYTES,
  shardBytes: CHUNK_BYTES,
  ...changes,
});

const cachedEntry = (object: ObjectShape, chunks: readonly number[]): [string, CachedObject] => {
  const { version, stripes } = object;
  return [version, { stripes, chunks, target: chunks, done: stripes }];
};

/** Plans objects asked for so many times, by an exact policy unless `options` name another. */
const plan = (
  asked: readonly (readonly [ObjectShape, number])[],
  options: Partial<PlannerOptions> = {},
  input: Partial<PlanInput> = {},
  before?: PlannerState,
): CachePlan =>
  new Planner({ policy: "exact", capacityBytes: 1e9, cacheMs: 5, delta: 0, slots: 16, ...options }, before).plan({
    nowMs: 60_000,
    requests: asked.map(([{ key }, requests]) => ({ key, requests, popularity: requests })),
    objects: new Map(asked.map(([object]) => [object.key, object])),
    regions,
    ledger: new Map(),
    ...input,
  });

const chunksOf = ({ planned }: CachePlan): Record<string, readonly number[]> =>
  Object.fromEntries(planned.map(({ object, chunks }) => [object.key, chunks]));

describe("regret", () => {
  const far = { k: 1, m: 0, placement: ["tokyo"] };
  const [a, b] = [shape("a", far), shape("b", far)];
  const regretOf = (cached: readonly (readonly [ObjectShape, readonly number[]])[], capacityBytes: number) => {
    const planner = new Planner({ policy: "exact", capacityBytes, cacheMs: 5, delta: 0, slots: 16 });
    const requests = [
      { key: "a", requests: 9, popularity: 1 },
      { key: "b", requests: 1, popularity: 9 },
    ];
    const objects = new Map([a, b].map((object) => [object.key, object]));
    const ledger = new Map(cached.map(([object, chunks]) => cachedEntry(object, chunks)));
    planner.plan({ nowMs: 60_000, requests, objects, regions, ledger });
    return planner.savings(() => [])!.regretMs;
  };

  test("is what the best contents for the reads of the period would have saved, whatever is popular now", () => {
    const saved = LATENCY_MS.tokyo - 5;
    expect(regretOf([], CHUNK_BYTES)).toBeCloseTo(0.9 * saved, 6);
    expect(regretOf([[b, [0]]], CHUNK_BYTES)).toBeCloseTo(0.8 * saved, 6);
    expect(regretOf([], 2 * CHUNK_BYTES)).toBeCloseTo(saved, 6);
  });

  test("is 0 with the best contents, and never below", () => {
    expect(regretOf([[a, [0]]], CHUNK_BYTES)).toBe(0);
    const both = [a, b].map((object) => [object, [0]] as const);
    expect(regretOf(both, CHUNK_BYTES), "contents above the capacity").toBe(0);
  });

  test("is absent where nothing was requested in the period", () => {
    const planner = new Planner({ policy: "exact", capacityBytes: 1e9, cacheMs: 5, delta: 0, slots: 16 });
    const requests = [{ key: "a", requests: 0, popularity: 1 }];
    planner.plan({ nowMs: 60_000, requests, objects: new Map([["a", a]]), regions, ledger: new Map() });
    expect(planner.savings(() => [])).not.toHaveProperty("regretMs");
  });
});

describe("what to keep", () => {
  test("with room for all, whole objects, as data that needs no decoding", () => {
    expect(chunksOf(plan([[shape("a"), 1]]))).toEqual({ a: WHOLE });
  });

  test("with room for one chunk, the most distant one that a read would wait for", () => {
    // Chunks 4 and 10 are in tokyo, 5 and 11 in sydney: the nine nearest end in tokyo.
    expect(chunksOf(plan([[shape("a"), 1]], { capacityBytes: CHUNK_BYTES }))).toEqual({ a: [4] });
  });

  test("the more popular object, within the capacity", () => {
    const { planned } = plan(
      [
        [shape("a"), 1],
        [shape("b"), 10],
      ],
      { capacityBytes: 9 * CHUNK_BYTES },
    );
    const countOf = (key: string): number => planned.find(({ object }) => object.key === key)?.chunks.length ?? 0;
    expect(countOf("b")).toBeGreaterThan(countOf("a"));
    expect(planned.reduce((sum, { chunks }) => sum + chunks.length, 0)).toBeLessThanOrEqual(9);
  });

  test("chunks of a region that is down are not what a read waits for, so others are kept", () => {
    const down = regions.map((region) => ({ ...region, down: region.name === "tokyo" }));
    const planned = plan([[shape("a"), 1]], { capacityBytes: CHUNK_BYTES }, { regions: down });
    expect(chunksOf(planned)).toEqual({ a: [5] });
  });

  test("with fewer than k chunks to be had, what is down counts too", () => {
    const down = regions.map((region) => ({ ...region, down: region.name !== "frankfurt" }));
    expect(chunksOf(plan([[shape("a"), 1]], {}, { regions: down }))).toEqual({ a: WHOLE });
  });

  test("long transfers make a region more distant", () => {
    const thin = regions.map((region) => (region.name === "dublin" ? { ...region, msPerByte: 0.1 } : region));
    const planned = plan([[shape("a"), 1]], { capacityBytes: CHUNK_BYTES }, { regions: thin });
    // Dublin, 10 s further for 100 kB, is furthest now; the ninth nearest is in sydney.
    expect(chunksOf(planned)).toEqual({ a: [5] });
  });

  test("with functional chunks, rows that no region has, and no others in another PoP", () => {
    const room = { capacityBytes: 3 * CHUNK_BYTES };
    expect(chunksOf(plan([[shape("a"), 1]], { ...room, functionalPop: 0 }))).toEqual({ a: [247, 248, 249] });
    expect(chunksOf(plan([[shape("a"), 1]], { ...room, functionalPop: 1 }))).toEqual({ a: [238, 239, 240] });
    // 256 rows less the 12 stored are 27 times 9.
    expect(chunksOf(plan([[shape("a"), 1]], { ...room, functionalPop: 26 }))).toEqual({ a: [13, 14, 15] });
    expect(chunksOf(plan([[shape("a"), 1]], { ...room, functionalPop: 27 }))).toEqual({ a: [247, 248, 249] });
    expect(chunksOf(plan([[shape("a"), 1]], { functionalPop: 1 }))).toEqual({ a: WHOLE });
  });

  test("keeps neither rows that belong to another PoP now nor copies that save less", () => {
    const room = { capacityBytes: 3 * CHUNK_BYTES, functionalPop: 1 };
    const object = shape("a");
    const withCached = (chunks: number[]): object =>
      chunksOf(plan([[object, 1]], room, { ledger: new Map([cachedEntry(object, chunks)]) }));
    expect(withCached([247, 248, 249])).toEqual({ a: [238, 239, 240] });
    expect(withCached([241, 242, 243])).toEqual({ a: [241, 242, 243] });
    expect(withCached([4, 8, 9])).toEqual({ a: [238, 239, 240] });
  });

  test("a cached set stays while another one of its size is hardly better, and goes when it has become useless", () => {
    const room = { capacityBytes: CHUNK_BYTES };
    const wobbly = regions.map((region) => ({ ...region, sdMs: region.meanMs / 10 }));
    const object = shape("a");
    const asked = [[object, 1]] as const;
    const withCached = (chunks: number[], at: RegionEstimate[]): CachePlan =>
      plan(asked, room, { regions: at, ledger: new Map([cachedEntry(object, chunks)]) });
    expect(chunksOf(withCached([10], wobbly))).toEqual({ a: [10] });
    expect(chunksOf(withCached([0], regions))).toEqual({ a: [4] });
  });
});

describe("worth", () => {
  test("is what a period saves beyond what is cached: nothing where all is there", () => {
    const object = shape("a");
    const worthWith = (chunks: readonly number[]): number =>
      plan([[object, 2]], {}, { ledger: new Map([cachedEntry(object, chunks)]) }).planned[0]!.worth;
    expect(worthWith(WHOLE)).toBe(0);
    // From tokyo's 3,400 ms to 5 ms, twice; and from sao paulo's 1,400 ms.
    expect(worthWith([])).toBeCloseTo(2 * 3_395);
    expect(worthWith([4])).toBeCloseTo(2 * 1_395);
  });

  test("of an object whose stripes are in doubt is all that it saves", () => {
    const object = shape("a");
    const [version, entry] = cachedEntry(object, WHOLE);
    const ledger = new Map([[version, { ...entry, done: 0 }]]);
    expect(plan([[object, 2]], {}, { ledger }).planned[0]!.worth).toBeCloseTo(2 * 3_395);
  });
});

describe("from period to period", () => {
  const room = { capacityBytes: 9 * CHUNK_BYTES };

  test("popularity lasts, and what is asked for more takes the room", () => {
    const first = plan([[shape("a"), 10]], room);
    expect(chunksOf(first)).toEqual({ a: WHOLE });
    const second = plan([[shape("b"), 1]], room, { nowMs: 120_000 }, first.state);
    expect(second.planned.find(({ object }) => object.key === "a")!.chunks.length).toBeGreaterThan(4);
    const third = plan([[shape("b"), 100]], room, { nowMs: 180_000 }, second.state);
    expect(chunksOf(third)).toEqual({ b: WHOLE });
  });

  test("an object that is gone leaves, one that could not be looked up stays", () => {
    const { state } = plan([[shape("a"), 10]], room);
    expect(chunksOf(plan([], room, { nowMs: 120_000 }, state))).toEqual({ a: WHOLE });
    const gone = { nowMs: 120_000, objects: new Map([["a", undefined]]) };
    expect(chunksOf(plan([], room, gone, state))).toEqual({});
  });

  test("an object without a request for a day is evicted", () => {
    const { state } = plan([[shape("a"), 10]], room);
    const after = (ms: number): object => chunksOf(plan([], room, { nowMs: 60_000 + ms }, state));
    expect(after(86_400_000)).toEqual({ a: WHOLE });
    expect(after(86_401_000)).toEqual({});
  });

  test("a new version takes the place of the old one, of the same shape or another", () => {
    const { state } = plan([[shape("a"), 10]], room);
    for (const renewed of [shape("a", { version: "a-2" }), shape("a", { version: "a-2", chunkBytes: 50_000 })]) {
      const { planned } = plan([[renewed, 1]], room, { nowMs: 120_000 }, state);
      expect(planned.map(({ object }) => object.version)).toEqual(["a-2"]);
    }
  });

  test("keys of equal content share what is cached, until one of them has other content", () => {
    const one = shape("one", { version: "same" });
    const two = shape("two", { version: "same" });
    const first = plan(
      [
        [one, 3],
        [two, 4],
      ],
      room,
    );
    expect(first.planned).toHaveLength(1);
    expect(first.planned[0]!.worth).toBeCloseTo(7 * 3_395);
    const apart = plan(
      [
        [shape("one", { version: "other", chunkBytes: 10 }), 3],
        [two, 4],
      ],
      { capacityBytes: 1e9 },
      { nowMs: 120_000 },
      first.state,
    );
    expect(apart.planned.map(({ object }) => object.version).toSorted()).toEqual(["other", "same"]);
  });

  test("while it is another PoP's turn the plan stays, and what was asked for meanwhile counts afterwards", () => {
    const first = plan([[shape("a"), 1]], room);
    const waiting = plan([[shape("b"), 100]], room, { nowMs: 120_000, mayChange: false }, first.state);
    expect(chunksOf(waiting)).toEqual({ a: WHOLE });
    expect(chunksOf(plan([], room, { nowMs: 180_000 }, waiting.state))).toEqual({ b: WHOLE });
  });

  test("a smaller capacity is kept to at once", () => {
    const { state } = plan([[shape("a"), 10]], { ...room, policy: "lru" });
    const { planned } = plan([], { policy: "lru", capacityBytes: 8 * CHUNK_BYTES }, { nowMs: 120_000 }, state);
    expect(planned).toEqual([]);
  });

  test("another policy starts afresh over what is cached", () => {
    const { state } = plan([[shape("a"), 10]], room);
    const { planned, error } = plan([], { ...room, policy: "adaptive" }, { nowMs: 120_000 }, state);
    expect(error).toBeUndefined();
    expect(planned.map(({ object }) => object.key)).toEqual(["a"]);
  });

  test("a full table of slots gives the one asked for longest ago to a new object, cached ones last", () => {
    const few = { slots: 2, capacityBytes: 9 * CHUNK_BYTES };
    const first = plan([[shape("a"), 10]], few);
    const second = plan([[shape("b", { chunkBytes: 1e9 }), 1]], few, { nowMs: 120_000 }, first.state);
    const third = plan([[shape("c"), 1_000]], few, { nowMs: 180_000 }, second.state);
    expect(Object.keys(chunksOf(third))).toContain("c");
    const kept = third.state.slots.map(({ content }) => content.object.key);
    expect(kept.toSorted()).toEqual(["a", "c"]);
  });

  test("a snapshot that the policy refuses is given up, and what is cached stays", () => {
    const { state } = plan([[shape("a"), 10]], room);
    const spoilt = { ...state, snapshot: state.snapshot!.map((byte) => byte ^ 1) };
    const { planned, error } = plan([[shape("a"), 1]], room, { nowMs: 120_000 }, spoilt);
    expect(error).toBeUndefined();
    expect(planned.map(({ object }) => object.key)).toEqual(["a"]);
  });

  test("a clock that goes back does no harm: time pauses until the clock has caught up", () => {
    const policies = ["adaptive", "online", "exact"];
    for (const policy of policies) {
      const first = plan([[shape("a"), 10]], { ...room, policy }, { nowMs: 600_000 });
      const second = plan([[shape("a"), 10]], { ...room, policy }, { nowMs: 60_000 }, first.state);
      expect(second.error).toBeUndefined();
      expect(chunksOf(second)).toEqual({ a: WHOLE });
      expect(second.state.seconds).toBe(600);
    }
  });
});

test("names what is planned and not cached, with and without requests for it", () => {
  const object = shape("a");
  const { state } = plan([[object, 1]]);
  const planner = new Planner({ policy: "exact", capacityBytes: 1e9, cacheMs: 5, delta: 0, slots: 16 }, state);
  const [version, entry] = cachedEntry(object, WHOLE);
  expect(planner.unsettled(new Map())).toEqual(["a"]);
  expect(planner.unsettled(new Map([[version, { ...entry, done: 0 }]]))).toEqual(["a"]);
  expect(planner.unsettled(new Map([[version, entry]]))).toEqual([]);
});

test("estimates that wobble are held, those that change are not", () => {
  const wobbled = regions.map((region) => ({ ...region, meanMs: region.meanMs * 1.04 }));
  expect(holdRegions(regions, wobbled)).toBe(regions);
  const slower = regions.map((region) => ({
    ...region,
    meanMs: region.meanMs * (region.name === "dublin" ? 2 : 1.04),
  }));
  expect(holdRegions(regions, slower).map(({ meanMs }) => meanMs)).toEqual([80, 400, 600, 1400, 3400, 4600]);
  const down = regions.map((region) => ({ ...region, down: region.name === "tokyo" }));
  expect(holdRegions(regions, down)[4]).toMatchObject({ name: "tokyo", down: true });
  const fewer = regions.slice(1);
  expect(holdRegions(regions, fewer)).toEqual(fewer);
});

test("too many requests are sampled: every object keeps its share to within one request", () => {
  const counts = Uint32Array.from([1_000, 0, 501, 3, 1, 8_495]);
  expect(sampleCounts(counts, 10_000)).toBe(counts);
  const sampled = sampleCounts(counts, 100);
  expect(sampled.reduce((sum, count) => sum + count, 0)).toBe(100);
  for (const [i, count] of counts.entries()) expect(Math.abs(sampled[i]! - count / 100)).toBeLessThanOrEqual(1);
});
