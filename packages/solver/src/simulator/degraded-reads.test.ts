import { describe, expect, test } from "vitest";
import { parseScenario } from "./scenario/scenario.ts";
import { simulate } from "./simulate.ts";
import { seededRandom } from "../random.ts";
import { SimulatedWorld } from "./world.ts";

/**
 * Data chunks 0 and 1 in a and b, parity in c; readers ask for parity only in place of data (Liu et al., section V-B).
 */
const SCENARIO = {
  name: "degraded",
  code: { k: 2, m: 1 },
  objects: { count: 4, bytes: 2000 },
  regions: ["a", "b", "c"],
  pops: [{ name: "p", regionLatencyMs: { a: 100, b: 300, c: 900 }, cacheLatencyMs: 10, capacityChunks: 4 }],
  popularity: { type: "uniform" },
  requests: { perSecond: 10, count: 400 },
  periodSeconds: 5,
  read: { dataChunksOnly: true },
  events: [{ atSeconds: 0, forSeconds: 1000, region: "b", down: true }],
};

describe("degraded reads", () => {
  test("the nearest parity replaces unavailable data, and is what a cache keeps of the object", () => {
    const chosen = [[], SCENARIO.events].map((events) => {
      const scenario = parseScenario({ ...SCENARIO, events, policies: [{ name: "backend" }] });
      const world = new SimulatedWorld(scenario, scenario.systems[0]!, seededRandom(1));
      world.advance(1);
      return world.chooseChunks(0, world.groupOf[0]!, 1, [0]);
    });
    expect(chosen).toEqual([1 << 1, 1 << 2]);
  });

  test.each(["online", "lru", "exact", "agar"])("%s caches what was recovered: later reads need no parity", (name) => {
    const chunks = name === "lru" ? { chunks: 1 } : {};
    const rows = simulate(parseScenario({ ...SCENARIO, policies: [{ name: "backend" }, { name, ...chunks }] }));
    const [backend, cached] = rows.filter(({ pop }) => pop === "all");
    expect(backend!.meanMs).toBe(900);
    expect(cached).toMatchObject({ failedReads: 0, p50Ms: expect.toSatisfy((ms: number) => ms <= 100) });
  });
});
