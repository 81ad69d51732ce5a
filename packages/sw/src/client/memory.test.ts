/** The memory of a client: plans and latencies. */
import { describe, expect, test } from "vitest";
import { LATENCY_UNKNOWN } from "@agarose/core/sources";
import type { FullPlan } from "./plans/bundle-request.ts";
import { LatencyTracker } from "./latency-tracker.ts";
import { PLANS_BYTES_MAX, PlanStore, PLAN_TTL_MS } from "./plans/plan-store.ts";
import { VirtualClock } from "../../test/virtual-clock.ts";

/** As much of a plan as the cache looks at: its hashes weigh `characters`. */
function planOf(characters: number): FullPlan {
  return { manifest: { hashes: ["x".repeat(characters)] }, regions: [] } as unknown as FullPlan;
}

describe("PlanStore", () => {
  const config = { regions: [], delta: undefined };

  test("forgets a plan a minute after it arrived, however often it is read", async () => {
    const clock = new VirtualClock();
    const cache = new PlanStore({ config, clock });
    cache.learn("a", planOf(1), 0);
    await clock.pass(PLAN_TTL_MS - 1);
    expect(cache.get("a")).toBeDefined();
    await clock.pass(1);
    expect(cache.get("a")).toBeUndefined();
  });

  test("drops the least recently used plans when they outgrow its bound", () => {
    const cache = new PlanStore({ config, clock: new VirtualClock() });
    for (const key of ["a", "b", "c"]) cache.learn(key, planOf(0.3 * PLANS_BYTES_MAX), 0);
    cache.get("a");
    cache.learn("d", planOf(0.3 * PLANS_BYTES_MAX), 0);
    expect(["a", "b", "c", "d"].filter((key) => cache.get(key))).toEqual(["a", "c", "d"]);
  });

  const filler = "x".repeat(0.3 * PLANS_BYTES_MAX);
  test.each<[string, object, object]>([
    ["headers", { headers: { expires: filler } }, {}],
    ["segments", { gzip: { segments: Array.from(filler, () => 7) } }, {}],
    ["an inline object", { inline: new Uint8Array(filler.length) }, {}],
    ["signatures", {}, { regions: [{ name: "r", signed: { seconds: 300, queries: { 0: filler } } }] }],
    ["unknown fields", {}, { future: filler }],
  ])("counts %s towards its bound", (_what, manifest, plan) => {
    const cache = new PlanStore({ config, clock: new VirtualClock() });
    const keys = ["a", "b", "c", "d"];
    const { manifest: sound, ...rest } = planOf(1);
    for (const key of keys) cache.learn(key, { ...rest, manifest: { ...sound, ...manifest }, ...plan } as FullPlan, 0);
    expect(keys.filter((key) => cache.get(key)).length).toBeLessThan(4);
    expect(cache.get("d")).toBeDefined();
  });

  test("keeps neither a plan that is larger than the cache nor the older plan of that key", () => {
    const cache = new PlanStore({ config, clock: new VirtualClock() });
    cache.learn("a", planOf(1), 0);
    cache.learn("b", planOf(1), 0);
    cache.learn("a", planOf(PLANS_BYTES_MAX), 0);
    expect([cache.get("a"), cache.get("b") !== undefined]).toEqual([undefined, true]);
  });

  test("does not remember what was requested before a purge and came after it", () => {
    const cache = new PlanStore({ config, clock: new VirtualClock() });
    const received = planOf(1);
    const before = cache.purges;
    cache.purge(() => true);
    expect(cache.learn("a", received, before), "the read itself goes on with it").toMatchObject({ regions: [] });
    expect(cache.get("a")).toBeUndefined();
    cache.learn("a", received, cache.purges);
    expect(cache.get("a")).toBeDefined();
  });
});

describe("LatencyTracker", () => {
  test("believes a seed until it has measured, and starts from it", () => {
    const book = new LatencyTracker(new VirtualClock());
    expect(book.estimate("r")).toEqual(LATENCY_UNKNOWN);
    book.seed("r", { meanMs: 100, sdMs: 10 });
    expect(book.estimate("r").meanMs).toBe(100);
    book.observe("r", 200);
    expect(book.estimate("r").meanMs).toBe(120);
  });

  test("knows after 16 measurements what is late: 95 of 100 take less", () => {
    const book = new LatencyTracker(new VirtualClock());
    for (let i = 0; i < 15; i++) book.observe("r", 100);
    expect(book.estimate("r").lateMs).toBeUndefined();
    book.observe("r", 100);
    expect(book.estimate("r").lateMs).toBe(100);
    for (const ms of [900, 800, 110]) book.observe("r", ms);
    for (let i = 0; i < 28; i++) book.observe("r", 100);
    // Of the last 32, the second longest.
    expect(book.estimate("r").lateMs).toBe(800);
    for (let i = 0; i < 32; i++) book.observe("r", 100);
    expect(book.estimate("r").lateMs).toBe(100);
  });

  test("keeps sizes apart, and takes a neighbouring size rather than a seed", () => {
    const book = new LatencyTracker(new VirtualClock());
    book.seed("r", { meanMs: 10, sdMs: 1 });
    book.observe("other", 500, 1024 * 1024);
    expect(book.estimate("other", 100).meanMs).toBe(500);
    book.observe("other", 30, 100);
    expect(book.estimate("other", 100).meanMs).toBe(30);
    expect(book.estimate("other", 1024 * 1024).meanMs).toBe(500);
  });

  test("puts a source that failed last, for twice as long each time in a row, until it delivers", async () => {
    const clock = new VirtualClock();
    const book = new LatencyTracker(clock);
    book.observe("r", 50);
    book.failed("r");
    book.failed("r");
    expect(book.estimate("r").meanMs).toBeGreaterThan(1_000);
    await clock.pass(5_000);
    expect(book.estimate("r").meanMs).toBe(50);
    book.failed("r");
    await clock.pass(9_999);
    expect(book.isAvoided("r")).toBe(true);
    book.observe("r", 50);
    expect(book.isAvoided("r")).toBe(false);
  });

  test("learns from a request that was cut off only when it was late already", () => {
    const book = new LatencyTracker(new VirtualClock());
    book.observe("r", 50);
    book.observeAtLeast("r", 20, 0);
    expect(book.estimate("r").meanMs).toBe(50);
    book.observeAtLeast("r", 1_050, 0);
    expect(book.estimate("r").meanMs).toBe(60);
  });

  test("is moved by one straggler by a fifth at most, and by a source that stays slow soon enough", () => {
    const book = new LatencyTracker(new VirtualClock());
    for (let i = 0; i < 10; i++) book.observe("r", 100);
    book.observe("r", 5_000);
    expect(book.estimate("r").meanMs).toBeCloseTo(120);
    for (let i = 0; i < 12; i++) book.observe("r", 500);
    expect(book.estimate("r").meanMs).toBeGreaterThan(350);
  });

  test("gives a source that was slow, and was not asked since, another chance after a minute", async () => {
    const clock = new VirtualClock();
    const book = new LatencyTracker(clock);
    book.observe("r", 2_000);
    await clock.pass(60_000);
    book.seed("r", { meanMs: 850, sdMs: 100 });
    expect(book.estimate("r").meanMs).toBe(2_000);
    await clock.pass(1);
    book.seed("r", { meanMs: 850, sdMs: 100 });
    expect(book.estimate("r").meanMs).toBe(850);
  });

  test("keeps what it measures itself when it is seeded", async () => {
    const clock = new VirtualClock();
    const book = new LatencyTracker(clock);
    for (let i = 0; i < 20; i++) {
      await clock.pass(30_000);
      book.seed("r", { meanMs: 850, sdMs: 100 });
      book.observe("r", 100);
    }
    expect(book.estimate("r").meanMs).toBeLessThan(150);
  });
});
