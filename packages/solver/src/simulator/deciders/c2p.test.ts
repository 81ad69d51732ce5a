import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { THREE_POPS } from "../../../test/three-pops.ts";
import { parseScenario } from "../scenario/scenario.ts";
import { simulate, type SimulationRow } from "../simulate.ts";

const SCENARIO = { ...THREE_POPS, requests: { perSecond: 10, count: 600 }, periodSeconds: 5, decide: "request" };

function run(changes: object): SimulationRow[] {
  return simulate(parseScenario({ ...SCENARIO, ...changes })).filter(({ pop }) => pop === "all");
}

describe("c2p in a scenario", () => {
  test("is a policy by name whose PoPs read from one another, and beats PoPs with LRU for themselves", () => {
    const [lru, c2p] = run({ policies: [{ name: "lru" }, { name: "c2p" }] });
    expect(c2p!.peerChunkRatio).toBeGreaterThan(0.2);
    expect(c2p!.meanMs).toBeLessThan(lru!.meanMs);
    expect(c2p!.writes).toBeLessThan(lru!.writes);
  });

  test("a PoP does not fetch what a peer holds: together the caches hold more objects than one can", () => {
    // All objects fit in the three caches together, but not in one.
    const [known, deaf] = run({
      objects: { count: 6, bytes: 3000 },
      systems: [
        { name: "known", policy: "c2p", delayMs: 0 },
        { name: "deaf", policy: "c2p", lossProbability: 1 },
      ],
    });
    expect(known!.chunkHitRatio + known!.peerChunkRatio).toBeGreaterThan(0.95);
    expect(known!.writes).toBeLessThan(20);
    expect(deaf!.writes).toBeGreaterThan(10 * known!.writes);
  });

  test("messages are gathered: a shorter time makes more of them, none reports none", () => {
    const [slow, fast, silent] = run({
      systems: [
        { name: "slow", policy: "c2p", gatherMs: 1000 },
        { name: "fast", policy: "c2p", gatherMs: 10 },
        { name: "silent", policy: "lru" },
      ],
    });
    // 60 s of three PoPs with two peers each, and a digest at the end.
    expect(slow!.messages).toBeLessThanOrEqual(6 * 61);
    expect(slow!.messages).toBeGreaterThan(6 * 40);
    expect(fast!.messages).toBeGreaterThan(5 * slow!.messages!);
    expect(silent).not.toHaveProperty("messages");
  });

  test("equal seeds lose the same messages, other seeds others, and the loss has an effect", () => {
    const lossy = { name: "lossy", policy: "c2p", lossProbability: 0.5, digestSeconds: 1000 };
    const systems = [{ name: "sound", policy: "c2p", digestSeconds: 1000 }, lossy];
    const [sound, once] = run({ systems });
    const [, again] = run({ systems });
    expect(again).toEqual(once);
    expect(once!.writes).not.toBe(sound!.writes);
    expect(run({ systems: [lossy], seed: 2 })[0]!.writes).not.toBe(once!.writes);
  });

  test("exchanges events where its settings say how, whatever the others decide by", () => {
    const systems = [{ name: "events", policy: "c2p", gatherMs: 200 }];
    expect(run({ systems, decide: "period" })).toEqual(run({ systems }));
  });

  test("never holds more than fits, whatever the sizes, chunks, delays and losses", () => {
    let evicted = 0;
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.nat(1e6),
          capacityBytes: fc.integer({ min: 0, max: 30_000 }),
          k: fc.integer({ min: 1, max: 5 }),
          cachedChunks: fc.constantFrom("exact", "functional"),
          settings: fc.record({
            affinitySeconds: fc.constantFrom(0, 5, 1e9),
            statementsMax: fc.integer({ min: 1, max: 5 }),
            gatherMs: fc.integer({ min: 1, max: 5000 }),
            delayMs: fc.integer({ min: 0, max: 20_000 }),
            lossProbability: fc.double({ min: 0, max: 1, noNaN: true }),
          }),
        }),
        ({ seed, capacityBytes, k, cachedChunks, settings }) => {
          const pops = SCENARIO.pops.map((pop) => ({ ...pop, capacityChunks: undefined, capacityBytes }));
          // A cache that would be overfilled throws INTERNAL.
          const [row] = run({
            seed,
            pops,
            code: { k, m: 2 },
            objects: { count: 20, bytes: { distribution: "lognormal", medianBytes: 3000, sigma: 1 } },
            requests: { perSecond: 10, count: 100 },
            read: { cachedChunks },
            policies: [{ name: "c2p", ...settings }],
          });
          expect(row!.failedReads).toBe(0);
          expect(row!.meanMs).toBeGreaterThan(0);
          if (row!.writes > 60) evicted++;
        },
      ),
      { numRuns: 60 },
    );
    expect(evicted).toBeGreaterThan(5);
  });

  test.each([
    ["affinitySeconds", NaN],
    ["affinitySeconds", -1],
    ["gatherMs", 0],
    ["gatherMs", Infinity],
    ["statementsMax", 0],
    ["statementsMax", 1.5],
    ["digestSeconds", 0],
    ["delayMs", -1],
    ["delayMs", NaN],
    ["lossProbability", 1.01],
    ["lossProbability", "much"],
    ["alpha", 0.8],
  ])("refuses the setting %s: %s", (field, value) => {
    expect(() => run({ policies: [{ name: "c2p", [field]: value }] })).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", details: { field: `c2p.${field}` } }),
    );
  });
});
