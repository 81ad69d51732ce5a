import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { THREE_POPS } from "../../../test/three-pops.ts";
import { parseScenario } from "../scenario/scenario.ts";
import { simulate, type SimulationRow } from "../simulate.ts";

const SCENARIO = { ...THREE_POPS, requests: { perSecond: 10, count: 3_000 }, periodSeconds: 30 };

/** Plays one joint system of each of these settings. */
function run(systems: readonly object[], changes: object = {}): SimulationRow[] {
  const named = systems.map((system, i) => ({ name: `${i}`, policy: "adaptive", joint: true, ...system }));
  return simulate(parseScenario({ ...SCENARIO, ...changes, systems: named })).filter(({ pop }) => pop === "all");
}

describe("PoPs that plan in turn", () => {
  test("keep different chunks of what all of them read, and are faster than without messages", () => {
    const [known, deaf] = run([{}, { lossProbability: 1 }]);
    expect(known!.peerChunkRatio).toBeGreaterThan(0.2);
    expect(known!.meanMs).toBeLessThan(0.95 * deaf!.meanMs);
  });

  test("send a digest each period and the news after each turn, to every peer", () => {
    const [row] = run([{}]);
    // 300 s are 10 periods, the last of which ends with the last read. 3 PoPs have 2 peers each.
    expect(row!.messages).toBeGreaterThanOrEqual(9 * 2 * 6);
    expect(row!.messages).toBeLessThanOrEqual(10 * 2 * 6);
  });

  test("messages that take longer than a turn may wait still let every PoP learn, and the caches fill", () => {
    const [slow, prompt] = run([{ delayMs: 40_000 }, {}]);
    expect(slow!.chunkHitRatio).toBeGreaterThan(0.2);
    expect(slow!.meanMs).toBeGreaterThan(prompt!.meanMs);
  });

  test.each(["lru", "agar", "exact", "online", "sprout", "adaptive"])("run with the policy %s", (policy) => {
    const cachedChunks = policy === "sprout" ? "functional" : "exact";
    const [row, backend] = run([
      { policy, read: { cachedChunks } },
      { policy: "backend", read: { cachedChunks } },
    ]);
    expect(row!.meanMs).toBeLessThan(0.8 * backend!.meanMs);
  });

  test("equal seeds lose the same messages, other seeds others", () => {
    const lossy = { lossProbability: 0.5 };
    const [once] = run([lossy]);
    expect(run([lossy])).toEqual([once]);
    expect(run([lossy], { seed: 2 })[0]!.meanMs).not.toBe(once!.meanMs);
  });

  test("never hold more than fits, whatever the sizes, chunks, delays, losses and regions that are down", () => {
    let cooperated = 0;
    fc.assert(
      fc.property(
        fc.record({
          seed: fc.nat(1e6),
          capacityBytes: fc.integer({ min: 0, max: 30_000 }),
          k: fc.integer({ min: 1, max: 5 }),
          policy: fc.constantFrom("adaptive", "exact", "lru", "clairvoyant"),
          cachedChunks: fc.constantFrom("exact", "recovered", "functional"),
          delayMs: fc.integer({ min: 0, max: 60_000 }),
          lossProbability: fc.double({ min: 0, max: 1, noNaN: true }),
        }),
        ({ seed, capacityBytes, k, policy, cachedChunks, ...wire }) => {
          const pops = SCENARIO.pops.map((pop) => ({ ...pop, capacityChunks: undefined, capacityBytes }));
          // A cache that would be overfilled throws INTERNAL.
          const [row] = run([{ policy, read: { delta: 1, cachedChunks }, ...(policy === "clairvoyant" ? {} : wire) }], {
            seed,
            pops,
            code: { k, m: 2 * k },
            objects: { count: 12, bytes: { distribution: "lognormal", medianBytes: 3000, sigma: 1 } },
            requests: { perSecond: 2, count: 200 },
            periodSeconds: 10,
            events: [{ atSeconds: 40, forSeconds: 30, region: "c", down: true }],
          });
          expect(row!.failedReads).toBe(0);
          if (row!.peerChunkRatio > 0) cooperated++;
        },
      ),
      { numRuns: 25 },
    );
    expect(cooperated).toBeGreaterThan(5);
  });

  test.each([
    ["delayMs", -1],
    ["lossProbability", 1.01],
    ["alpha", 0.8],
  ])("refuse the setting %s: %s", (field, value) => {
    expect(() => run([{ [field]: value }])).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", details: { field: `adaptive.${field}` } }),
    );
  });
});
