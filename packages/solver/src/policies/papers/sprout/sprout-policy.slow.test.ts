import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseScenario } from "../../../simulator/scenario/scenario.ts";
import { simulate, type SimulationRow } from "../../../simulator/simulate.ts";
import { createPolicy } from "../../registry.ts";
import type { StorageView } from "../../../policy/policy.ts";
import { seededRandom } from "../../../random.ts";
import { RecordingCache } from "../../../../test/recording-cache.ts";

const SCENARIO = {
  name: "small",
  code: { k: 3, m: 3 },
  objects: { count: 60, bytes: 3000 },
  regions: ["near", "middle", "far"],
  pops: [
    {
      name: "p",
      regionLatencyMs: { near: 100, middle: 300, far: 900 },
      cacheLatencyMs: 10,
      capacityChunks: 30,
    },
  ],
  noise: { lognormalSigma: 0.3 },
  popularity: { type: "zipf", exponent: 1 },
  requests: { perSecond: 10, count: 1500 },
};

function run(changes: object): SimulationRow[] {
  return simulate(parseScenario({ ...SCENARIO, ...changes })).filter(({ pop }) => pop === "all");
}

describe("policy sprout", () => {
  test("is a policy by name that keeps functional chunks, and comes near the exact optimum of its periods", () => {
    const functional = { cachedChunks: "functional" };
    const [backend, exact, sprout] = run({
      read: functional,
      policies: [{ name: "backend" }, { name: "exact" }, { name: "sprout" }],
    });
    expect(sprout!.meanMs).toBeLessThan(0.9 * backend!.meanMs);
    expect(sprout!.meanMs).toBeLessThan(1.1 * exact!.meanMs);
    expect(run({ policies: [{ name: "sprout" }] })[0]!.meanMs).toBe(sprout!.meanMs);
  });

  test("a system can set another way to read", () => {
    const systems = [{ name: "s", policy: "sprout", read: { cachedChunks: "exact" } }];
    expect(parseScenario({ ...SCENARIO, systems }).systems[0]!.read.cachedChunks).toBe("exact");
    expect(parseScenario({ ...SCENARIO, policies: [{ name: "sprout" }] }).systems[0]!.read.cachedChunks).toBe(
      "functional",
    );
  });

  test("still plans when regions are slow or down, and objects differ in size", () => {
    const [row] = run({
      objects: { count: 60, bytes: { distribution: "lognormal", medianBytes: 3000, sigma: 1 } },
      pops: [{ ...SCENARIO.pops[0], capacityChunks: undefined, capacityBytes: 30_000 }],
      events: [
        { atSeconds: 35, forSeconds: 40, region: "near", down: true },
        { atSeconds: 60, forSeconds: 40, region: "middle", latencyFactor: 5 },
      ],
      load: { utilization: 0.6 },
      policies: [{ name: "sprout" }],
    });
    expect(row).toMatchObject({ reads: 1500, failedReads: 0 });
    expect(row!.chunkHitRatio).toBeGreaterThan(0.1);
  });

  test("never overfills a cache, whatever its regions, load and sizes", () => {
    let kept = 0;
    fc.assert(
      fc.property(fc.nat(), fc.constantFrom(0, 0.3, 0.9), (seed, utilization) => {
        const random = seededRandom(seed);
        // RecordingCache throws when it is overfilled.
        const cache = new RecordingCache(24, seed);
        const regions = 1 + random.integer(4);
        const storage: StorageView = {
          latency: Array.from({ length: regions }, () => ({ meanMs: 500 * random.next(), sdMs: 100 * random.next() })),
          utilization,
          regionsOf: (object) => Array.from({ length: 1 + ((object * 7) % 6) }, (_, chunk) => chunk % regions),
        };
        const policy = createPolicy("sprout", Object.assign(cache, { storage }));
        for (let i = 0; i < 200; i++) policy.onRequest(Math.floor(24 ** random.next() - 1), i);
        policy.onPeriod!(200);
        for (let o = 0; o < 24; o++) {
          if (cache.countOf(o) > 0) kept++;
          // Too few chunks left to read it: it is not kept in part.
          if (storage.regionsOf(o).length < cache.kOf(o)) expect(cache.countOf(o)).toBe(0);
        }
      }),
      { numRuns: 60 },
    );
    expect(kept).toBeGreaterThan(100);
  });

  test.each([0, -1, NaN, 2, "0.8"])("refuses alpha %s", (alpha) => {
    expect(() => run({ policies: [{ name: "sprout", alpha }] })).toThrow("sprout.alpha");
  });
});
