import { describe, expect, test } from "vitest";
import { advise, type AdviceRequest } from "./advise.ts";
import { FAILURES_DEFAULT, lossesPerYear, nines, unavailability } from "./durability.ts";

const region = (name: string, provider: string, ms: number): AdviceRequest["regions"][number] => ({
  name,
  provider,
  latencyMs: { fra: ms },
  storagePerGbMonth: 0.02,
  getPerMillion: 0.4,
  egressPerGb: 0.05,
});

const NEAR: AdviceRequest = {
  regions: [region("a", "p", 10), region("b", "q", 12), region("c", "r", 15), region("far", "s", 400)],
  pops: [{ name: "fra", weight: 1, cacheLatencyMs: 4 }],
  data: { objects: 10_000, bytesPerObject: 1_000_000, readsPerMonth: 1_000_000 },
  survive: { regions: 1, providers: 1 },
  codes: [
    [2, 1],
    [1, 1],
    [4, 2],
  ],
  cacheShares: [0, 0.05],
};

describe("advise", () => {
  test("every layout survives the requested losses", () => {
    for (const { k, m, regions } of advise(NEAR)) {
      // The fullest region holds the most chunks that one loss can take.
      expect(Math.ceil((k + m) / regions.length), `${k}+${m} over ${regions.join()}`).toBeLessThanOrEqual(m);
    }
  });

  test("near providers come first, and a cache makes reads faster", () => {
    const [first] = advise(NEAR);
    expect(first!.regions).not.toContain("far");
    expect(first!.cacheShare).toBe(0.05);
    const same = advise(NEAR).find(
      (one) =>
        one.cacheShare === 0 &&
        one.k === first!.k &&
        one.m === first!.m &&
        one.regions.join() === first!.regions.join(),
    );
    expect(same!.meanMs).toBeGreaterThan(first!.meanMs);
  });

  test("the efficient ones are exactly those that nothing beats in both latency and cost", () => {
    const all = advise(NEAR);
    for (const one of all) {
      const beaten = all.some(
        (by) =>
          by.meanMs <= one.meanMs &&
          by.costPerMonth <= one.costPerMonth &&
          (by.meanMs < one.meanMs || by.costPerMonth < one.costPerMonth),
      );
      expect(one.isEfficient).toBe(!beaten);
    }
    expect(all.some((one) => one.isEfficient)).toBe(true);
  });

  test("slow transfers make large objects slower by the time of one chunk, and smaller chunks win", () => {
    const alone = { ...NEAR, regions: NEAR.regions.slice(0, 3), cacheShares: [0], sigma: 0 };
    const meanOf = (request: AdviceRequest, k: number): number => advise(request).find((one) => one.k === k)!.meanMs;
    const slow = { ...alone, regions: alone.regions.map((one) => ({ ...one, bandwidthMBps: 10 })) };
    // 1 MB at 10 MB/s takes 100 ms whole, 50 ms in halves, 25 ms in quarters.
    for (const k of [1, 2, 4]) expect(meanOf(slow, k)).toBeCloseTo(meanOf(alone, k) + 100 / k, 6);
    expect(advise(alone)[0]!.k).toBe(1);
    expect(advise(slow)[0]!.k).toBe(4);
  });

  test("storage is charged by its overhead, without reads and cache", () => {
    const cold = { ...NEAR, data: { ...NEAR.data, readsPerMonth: 0 }, cacheShares: [0], codes: [[2, 1]] as const };
    for (const one of advise(cold)) expect(one.costPerMonth).toBeCloseTo(10 * 1.5 * 0.02, 9);
  });

  test.each<[string, object, string]>([
    ["no regions", { regions: [] }, "regions"],
    ["a missing latency", { regions: [{ ...NEAR.regions[0], latencyMs: {} }] }, "regions[0].latencyMs.fra"],
    ["a negative price", { regions: [{ ...NEAR.regions[0], egressPerGb: -1 }] }, "regions[0].egressPerGb"],
    ["no bandwidth at all", { regions: [{ ...NEAR.regions[0], bandwidthMBps: 0 }] }, "regions[0].bandwidthMBps"],
    ["a weight of zero", { pops: [{ ...NEAR.pops[0], weight: 0 }] }, "pops[0].weight"],
    ["no survival target", { survive: {} }, "survive.regions"],
    ["a code that is none", { codes: [[0, 1]] }, "codes[0]"],
  ])("refuses %s", (_name, change, field) => {
    expect(() => advise({ ...NEAR, ...change } as AdviceRequest)).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", details: { field } }),
    );
  });

  test("refuses a request that no layout survives", () => {
    expect(() => advise({ ...NEAR, survive: { regions: 4, providers: 0 } })).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID" }),
    );
  });

  test("advice has the nines of its layout, by the failures that are given", () => {
    const [k, m] = [2, 1];
    const alone = { ...NEAR, regions: NEAR.regions.slice(0, 3), codes: [[k, m] as const], cacheShares: [0] };
    const places = ["p", "q", "r"].map((provider) => ({ provider, chunks: 1 }));
    const three = (request: AdviceRequest) => advise(request).find(({ regions }) => regions.length === 3)!;
    expect(three(alone).availabilityNines).toBeCloseTo(nines(unavailability(places, m, FAILURES_DEFAULT)), 12);
    expect(three(alone).durabilityNines).toBeCloseTo(nines(lossesPerYear(places, m, FAILURES_DEFAULT)), 12);
    const often = three({ ...alone, failures: { regionDown: 0.1, providerDown: 0, repairDays: 70 } });
    expect(often.availabilityNines).toBeCloseTo(-Math.log10(3 * 0.1 ** 2 * 0.9 + 0.1 ** 3), 9);
    expect(often.durabilityNines).toBeLessThan(three(alone).durabilityNines - 0.9);
  });

  test.each([
    [{ regionDown: 2 }, "failures.regionDown"],
    [{ repairDays: 0 }, "failures.repairDays"],
    [{ regionDwn: 0.1 }, "failures.regionDwn"],
  ])("failures %j are refused", (failures, field) => {
    expect(() => advise({ ...NEAR, failures: failures as never })).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", message: expect.stringContaining(field) }),
    );
  });
});
