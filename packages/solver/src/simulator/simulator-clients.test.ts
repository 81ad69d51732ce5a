/**
 * The additions of deployed PoPs and clients to the plain model: when caches change, hedging, plans, transfer times.
 */
import { describe, expect, test } from "vitest";
import { parseScenario } from "./scenario/scenario.ts";
import { simulate, type SimulationRow } from "./simulate.ts";

const SMALL = {
  code: { k: 2, m: 2 },
  objects: { count: 1, bytes: 1_000_000 },
  regions: ["near", "far"],
  pops: [{ name: "one", regionLatencyMs: { near: 100, far: 500 }, cacheLatencyMs: 10, capacityChunks: 2 }],
  popularity: { type: "zipf", exponent: 1 },
  requests: { perSecond: 10, count: 100 },
  periodSeconds: 5,
  load: { utilization: 0 },
  policies: [{ name: "backend" }],
};

function run(changes: object): SimulationRow {
  return simulate(parseScenario({ ...SMALL, ...changes })).find(({ pop }) => pop === "all")!;
}

describe("decide", () => {
  test("request: a cache of recently read objects has the second read already", () => {
    expect(run({ policies: [{ name: "lru" }], decide: "request" }).fullHitRatio).toBe(0.99);
  });

  test("period: without exchanges the cache stays as it is until the period is over", () => {
    // The reads of the first 5 s, one each 0.1 s: of 100 reads half.
    const row = run({ policies: [{ name: "lru" }], exchangeSeconds: 5 });
    expect(row.fullHitRatio).toBeCloseTo(0.5, 1);
    expect(row.writes).toBe(1);
  });

  test("period: an exchange changes the cache, and the period writes what is left of it", () => {
    const row = run({ policies: [{ name: "lru" }], exchangeSeconds: 1 });
    expect(row.fullHitRatio).toBeCloseTo(0.9, 1);
    expect(row.writes).toBe(1);
    // Two objects, room for one: exchanges replace one by the other many times, and two periods write it once each.
    const two = { objects: { count: 2, bytes: 1_000_000 }, policies: [{ name: "lru" }], exchangeSeconds: 0.2 };
    expect(run(two).writes).toBeLessThanOrEqual(2);
    expect(run({ ...two, decide: "request" }).writes).toBeGreaterThan(20);
  });

  test("PoPs that place together write once a period in either case, and exchange as deployed ones do", () => {
    const other = { ...SMALL.pops[0], name: "two", peerLatencyMs: { one: 40 } };
    const systems = [{ name: "joint", policy: "adaptive", joint: true }];
    const pops = [SMALL.pops[0], other];
    const joint = (changes: object): SimulationRow => run({ pops, systems, policies: undefined, ...changes });
    expect(joint({ decide: "request" }).chunkHitRatio).toBeCloseTo(0.5, 1);
    expect(joint({ exchangeSeconds: 5 }).chunkHitRatio).toBeCloseTo(0.5, 1);
    const exchanged = joint({ exchangeSeconds: 1 });
    expect(exchanged.chunkHitRatio).toBeCloseTo(0.9, 1);
    expect(exchanged.writes).toBeLessThanOrEqual(joint({ exchangeSeconds: 5 }).writes);
  });
});

describe("cacheMbitPerSecond", () => {
  test("chunks of one cache come one after another", () => {
    // Two chunks of 500 kB at 100 Mbit/s: 40 ms each.
    const pops = [{ ...SMALL.pops[0], cacheMbitPerSecond: 100 }];
    const row = run({ pops, policies: [{ name: "lru" }], decide: "request" });
    expect(row.p50Ms).toBeCloseTo(10 + 80, 0);
  });

  test("a peer's chunks come at the same time", () => {
    const one = { ...SMALL.pops[0], cacheMbitPerSecond: 100, capacityChunks: 0, peerLatencyMs: { two: 20 } };
    const two = { ...SMALL.pops[0], name: "two" };
    const rows = simulate(
      parseScenario({
        ...SMALL,
        pops: [one, two],
        policies: undefined,
        systems: [{ name: "joint", policy: "clairvoyant", joint: true }],
      }),
    );
    expect(rows.find(({ pop }) => pop === "one")!.p50Ms).toBeCloseTo(20 + 40, 0);
  });
});

describe("client", () => {
  const stragglers = { stragglerProbability: 0.1, stragglerFactor: 100, lognormalSigma: 0.1 };

  test("hedge: a late read asks for one more chunk, and is faster than its straggler", () => {
    const patient = run({ noise: stragglers });
    const hedging = run({ noise: stragglers, client: { hedge: true } });
    // One of five reads has a straggler of 10 s. Late after about 117 ms, the far region answers within some 500 ms
    // more.
    expect(patient.p95Ms).toBeGreaterThan(5_000);
    expect(hedging.p95Ms).toBeLessThan(1_500);
    expect(hedging.requestsPerRead).toBeGreaterThan(2);
    expect(hedging.requestsPerRead).toBeLessThan(2.5);
  });

  test("hedge: a read in time asks for no further chunk", () => {
    expect(run({ client: { hedge: true } })).toEqual(run({}));
  });

  test("plans asked: the first read of an object at a PoP takes two more round trips", () => {
    const row = run({ client: { plans: "asked" } });
    expect(row.meanMs).toBeCloseTo(100 + (10 + 100) / 100, 6);
    expect(row.p50Ms).toBe(100);
  });

  test("plans asked: a read after a minute takes one more round trip, to the PoP alone", () => {
    // 100 reads over 200 s: a plan is asked for at 0, 60, 120 and 180 s.
    const row = run({ client: { plans: "asked" }, requests: { perSecond: 0.5, count: 100 } });
    expect(row.meanMs).toBeGreaterThan(100 + (4 * 10 + 100 - 15) / 100);
    expect(row.meanMs).toBeLessThan(100 + (4 * 10 + 100 + 15) / 100);
  });

  test("overheadMs: every read takes that much longer", () => {
    expect(run({ client: { overheadMs: 7 } }).meanMs).toBe(107);
  });

  test.each([
    [100, 100 + 80, "carries both chunks at once"],
    [1_000, 100 + 40, "is wider than both sources"],
  ])("mbitPerSecond: a line of %d Mbit/s takes %d ms, because it %s", (mbitPerSecond, ms) => {
    // Two chunks of 500 kB from a region 100 ms away, 40 ms each at 100 Mbit/s.
    const pops = [{ ...SMALL.pops[0], regionLatencyMs: { near: 100, far: 100 }, regionMbitPerSecond: 100 }];
    expect(run({ pops, client: { mbitPerSecond } }).p50Ms).toBeCloseTo(ms, 0);
  });

  test.each([
    [{ client: { hedge: 1 } }, "client.hedge"],
    [{ client: { plans: "guessed" } }, "client.plans"],
    [{ client: { overheadMs: -1 } }, "client.overheadMs"],
    [{ client: { mbitPerSecond: 0 } }, "client.mbitPerSecond"],
    [{ client: { late: true } }, "client.late"],
    [{ decide: "never" }, "decide"],
    [{ exchangeSeconds: 0 }, "exchangeSeconds"],
    [{ pops: [{ ...SMALL.pops[0], cacheMbitPerSecond: 0 }] }, "pops[0].cacheMbitPerSecond"],
  ])("%j is refused with its name", (changes, field) => {
    expect(() => parseScenario({ ...SMALL, ...changes })).toThrow(field);
  });
});
