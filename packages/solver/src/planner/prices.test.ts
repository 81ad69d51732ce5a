/** One objective: what the planner keeps when reads, writes and the cache cost money. */
import { describe, expect, test } from "vitest";
import { peerView } from "../cooperation/peer-view.ts";
import type { RegionEstimate } from "../options/sources.ts";
import type { ObjectShape } from "./object-shape.ts";
import type { CachePlan, PlanInput, PlannerOptions } from "./plan.ts";
import { Planner } from "./planner.ts";
import { fillMs, pricesInMs, type UsdPrices } from "./prices.ts";

const regions: RegionEstimate[] = ["dear0", "dear1", "dear2", "free0", "free1", "free2"].map((name) => {
  return { name, meanMs: 100, sdMs: 0, down: false };
});
const CHUNK_BYTES = 500_000;
const HOUR = 3_600_000;

const shape = (key: string, kind: "dear" | "free", changes: Partial<ObjectShape> = {}): ObjectShape => ({
  key,
  version: `${key}-1`,
  k: 2,
  m: 1,
  placement: [0, 1, 2].map((chunk) => `${kind}${chunk}`),
  stripes: 1,
  chunkBytes: CHUNK_BYTES,
  shardBytes: CHUNK_BYTES,
  ...changes,
});

const prices = (changes: Partial<UsdPrices> = {}) =>
  pricesInMs({
    waitingPerHour: 1,
    writePerMillion: 5,
    storagePerGbMonth: 0.5,
    egressPerGb: new Map([0, 1, 2].map((chunk) => [`dear${chunk}`, 0.09])),
    ...changes,
  });

const plan = (
  asked: readonly (readonly [ObjectShape, number])[],
  options: Partial<PlannerOptions> = {},
  input: Partial<PlanInput> = {},
): CachePlan =>
  new Planner({ policy: "exact", capacityBytes: 2 * CHUNK_BYTES, cacheMs: 5, delta: 0, slots: 16, ...options }).plan({
    nowMs: 60_000,
    requests: asked.map(([{ key }, requests]) => ({ key, requests, popularity: requests })),
    objects: new Map(asked.map(([object]) => [object.key, object])),
    regions,
    ledger: new Map(),
    ...input,
  });

const keysOf = ({ planned }: CachePlan): string[] => planned.map(({ object }) => object.key).toSorted();

test("a price counts as the milliseconds that it buys", () => {
  const { egressPerByte, write, storagePerByteSecond } = prices({ waitingPerHour: 2 });
  // A GB for 9 cents is 0.045 hours of waiting.
  expect(egressPerByte.get("dear0")! * 1e9).toBeCloseTo(0.045 * HOUR, 6);
  expect(egressPerByte.get("free0")).toBeUndefined();
  expect(write).toBeCloseTo(9, 9);
  expect(storagePerByteSecond * 1e9 * 30 * 86_400).toBeCloseTo(0.25 * HOUR, 6);
});

describe("what reads pay for egress", () => {
  test("a dear object takes the place of one that is read somewhat more often", () => {
    const asked = [
      [shape("dear", "dear"), 10],
      [shape("free", "free"), 12],
    ] as const;
    expect(keysOf(plan(asked))).toEqual(["free"]);
    expect(keysOf(plan(asked, { prices: prices() }))).toEqual(["dear"]);
    // Where waiting is worth much, egress matters little.
    expect(keysOf(plan(asked, { prices: prices({ waitingPerHour: 1_000 }) }))).toEqual(["free"]);
  });

  test("the value of an option is the time and the egress that it saves", () => {
    const [planned] = plan([[shape("dear", "dear"), 10]], { prices: prices() }).planned;
    // Two chunks of half a MB are 9 cents a thousand reads: 0.00009 hours each.
    expect(planned?.worth).toBeCloseTo(10 * (100 - 5 + 0.000_09 * HOUR), 6);
  });

  test("what peers would pay counts, too", () => {
    const asked = [
      [shape("dear", "dear"), 1],
      [shape("free", "free"), 1],
    ] as const;
    const popularity = {
      popular: asked.map(([{ key }]) => [key, key === "free" ? 12 : 10] as const),
      regions,
      peers: [],
    };
    const report = { name: "lhr", meanMs: 7, sdMs: 0, held: new Map(), popularity };
    const view = (costMsPerByte?: ReadonlyMap<string, number>) =>
      peerView({ pop: "fra", peers: [report], cacheMs: 5, delta: 0, costMsPerByte });
    expect(keysOf(plan(asked, {}, { peers: view() }))).toEqual(["free"]);
    const { egressPerByte } = prices();
    expect(view(egressPerByte).savedAtPeers(asked[0][0], [0, 1])).toBeCloseTo(10 * (100 - 7 + 0.000_09 * HOUR), 6);
    expect(keysOf(plan(asked, { prices: prices() }, { peers: view(egressPerByte) }))).toEqual(["dear"]);
  });
});

test("a fill costs its writes and its egress: k chunks of the cheapest regions for a new row, one for a copy", () => {
  const chunkMs = 0.000_045 * HOUR;
  const dear = shape("dear", "dear", { stripes: 3 });
  expect(fillMs(dear, prices(), false)).toBeCloseTo(3 * 18 + chunkMs, 6);
  expect(fillMs(dear, prices(), true)).toBeCloseTo(3 * 18 + 2 * chunkMs, 6);
  const mixed = shape("mixed", "dear", { placement: ["dear0", "free1", "free2"] });
  expect(fillMs(mixed, prices(), true), "two of three regions are free").toBeCloseTo(18, 6);
  expect(fillMs(mixed, prices(), false)).toBeCloseTo(18 + chunkMs / 3, 6);
});

test("a write that costs more than it saves is not made", () => {
  const asked = [
    [shape("seldom", "free", { stripes: 200 }), 2],
    [shape("often", "free"), 2_000],
  ] as const;
  const options = { policy: "adaptive", capacityBytes: 1e9 };
  expect(keysOf(plan(asked, { ...options, prices: prices({ writePerMillion: 0 }) }))).toEqual(["often", "seldom"]);
  expect(keysOf(plan(asked, { ...options, prices: prices({ writePerMillion: 5e3 }) }))).toEqual(["often"]);
});

test("the cache keeps no more than pays for its storage, whatever its capacity", () => {
  const asked = Array.from({ length: 8 }, (_, o) => [shape(`o${o}`, "free"), 2 ** o] as const);
  const kept = [0.5, 5e3, 5e4, 5e6].map((storagePerGbMonth) => {
    return keysOf(plan(asked, { capacityBytes: 1e12, prices: prices({ storagePerGbMonth }) })).length;
  });
  expect(kept[0]).toBe(8);
  expect(kept.at(-1)).toBe(0);
  expect(kept.toSorted((a, b) => b - a)).toEqual(kept);
  expect(new Set(kept).size, "the cache shrinks step by step").toBeGreaterThan(2);
});

test.each(["agar", "exact", "adaptive"])("%s loses nothing by prices while all regions are free", (policy) => {
  const asked = Array.from({ length: 8 }, (_, o) => [shape(`o${o}`, "free"), 10 * 2 ** o] as const);
  const free = prices({ egressPerGb: new Map() });
  expect(keysOf(plan(asked, { policy, prices: free }))).toEqual(keysOf(plan(asked, { policy })));
});
