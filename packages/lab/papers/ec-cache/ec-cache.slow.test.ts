import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { simulateReadCluster, type ReadClusterStudy } from "./read-cluster.ts";
import { spreadRedundancy } from "./redundancy.ts";
import { imbalancePercent } from "@agarose/solver/planner";

/** 10 MB objects over links of 8 Gbit/s: one takes 10 ms, a tenth of it 1 ms. */
const STUDY: ReadClusterStudy = {
  seed: 1,
  reads: 20_000,
  servers: 25,
  objects: 200,
  objectBytes: 10e6,
  zipfExponent: 0.9,
  memoryOverhead: 0.15,
  k: 10,
  delta: 1,
  serverMbitPerSecond: 8000,
  clientMbitPerSecond: 1e9,
  load: { utilization: 0.3 },
};
const WHOLE = { ...STUDY, k: 1, delta: 0 };

describe("EC-Cache's cluster", () => {
  test("one server is a queue of fixed service times: the mean is that of M/D/1", () => {
    const study = { ...WHOLE, servers: 1, objects: 1, memoryOverhead: 0, load: { utilization: 0.6 }, reads: 200_000 };
    expect(simulateReadCluster(study).meanMs).toBeCloseTo(10 * (1 + 0.6 / (2 * 0.4)), 0);
  });

  test("without load a read takes its splits' time, the client's link and the decoding where these are slower", () => {
    const idle = { ...STUDY, load: { utilization: 1e-5 }, reads: 500 };
    expect(simulateReadCluster(idle).meanMs).toBeCloseTo(1, 1);
    expect(simulateReadCluster({ ...WHOLE, load: { utilization: 1e-5 }, reads: 500 }).meanMs).toBeCloseTo(10, 1);
    // 11 MB over 8 Gbit/s, 11 connections, 10 MB decoded at 1 GB/s.
    const real = { ...idle, clientMbitPerSecond: 8000, connectionMs: 0.5, decodeMbPerSecond: 1000 };
    expect(simulateReadCluster(real).meanMs).toBeCloseTo(11 + 5.5 + 10, 6);
  });

  test("splitting halves the imbalance of copies at least, and extra requests cannot get below 100 delta / k", () => {
    const copies = simulateReadCluster({ ...WHOLE, reads: 100_000, objects: 800 });
    const splits = simulateReadCluster({ ...STUDY, reads: 100_000, objects: 800 });
    expect(splits.imbalancePercent).toBeLessThan(copies.imbalancePercent / 2);
    expect(splits.imbalancePercent).toBeGreaterThan(10);
  });

  test("stragglers lengthen the tail of k splits, and one extra request takes most of it back (section 5.2)", () => {
    const straggler = { probability: 0.01, factor: 10 };
    const of = (changes: object) =>
      simulateReadCluster({ ...STUDY, load: { utilization: 0.1 }, straggler, ...changes });
    const p95 = ({ quantileMs }: ReturnType<typeof of>): number => quantileMs(0.95);
    const naive = of({ delta: 0 });
    expect(naive.quantileMs(0.5)).toBeLessThan(2);
    expect(p95(naive)).toBeGreaterThan(8);
    expect(p95(of({ delta: 1 }))).toBeLessThan(p95(naive) / 2);
  });

  test("clients without pauses read one after another: many are no faster than the links", () => {
    const alone = simulateReadCluster({ ...WHOLE, load: { clients: 1 }, reads: 500 });
    expect(alone.meanMs).toBeCloseTo(10, 9);
    // 100 clients of 25 links, each read 10 ms of one of them: 40 ms at best.
    const crowd = simulateReadCluster({
      ...WHOLE,
      load: { clients: 100 },
      zipfExponent: 0,
      memoryOverhead: 24,
      reads: 20_000,
    });
    expect(crowd.meanMs).toBeGreaterThan(40);
    expect(crowd.meanMs).toBeLessThan(60);
  });

  test("a failed server sends reads of single copies to the storage below, but of no object with parity", () => {
    const failure = { servers: 1, storageMs: 800 };
    const copies = simulateReadCluster({ ...WHOLE, failure });
    const splits = simulateReadCluster({ ...STUDY, failure });
    expect(copies.storageReads).toBeGreaterThan(100);
    expect(copies.quantileMs(0.999)).toBeGreaterThanOrEqual(800);
    expect(splits.storageReads).toBe(0);
    expect(splits.quantileMs(0.999)).toBeLessThan(800);
  });

  test("other traffic slows the servers it meets down", () => {
    const background = { servers: 3, everyMs: 100, linkShare: 0.5 };
    expect(simulateReadCluster({ ...STUDY, background }).meanMs).toBeGreaterThan(simulateReadCluster(STUDY).meanMs);
    const all = { servers: 25, everyMs: 100, linkShare: 0.5 };
    const idle = { ...STUDY, load: { utilization: 1e-5 }, reads: 500 };
    expect(simulateReadCluster({ ...idle, background: all }).meanMs).toBeCloseTo(2, 1);
  });

  test("equal seeds give equal results, others do not", () => {
    const [first, again, other] = [1, 1, 2].map((seed) => simulateReadCluster({ ...STUDY, seed, reads: 1000 }).meanMs);
    expect(again).toBe(first);
    expect(other).not.toBe(first);
  });
});

describe("spreadRedundancy", () => {
  test("gives the spare pieces to the popular until all are equally busy", () => {
    expect(spreadRedundancy([8, 4, 1], 1, 3, 10)).toEqual(Int32Array.of(3, 2, 1));
    expect(spreadRedundancy([8, 4, 1], 1, 100, 2)).toEqual(Int32Array.of(2, 2, 2));
    expect(spreadRedundancy([0, 0], 2, 1, 3)).toEqual(Int32Array.of(3, 2));
  });

  test("spends exactly what there is, within base and most, and never gives more to the less popular", () => {
    // Not next to the smallest number there is, where no ratio of popularities is exact.
    const weight = fc.oneof(fc.constant(0), fc.double({ min: 1e-200, max: 1e6, noNaN: true }));
    fc.assert(
      fc.property(
        fc.array(weight, { minLength: 1, maxLength: 20 }),
        fc.integer({ min: 1, max: 5 }),
        fc.nat(60),
        fc.nat(6),
        (popularity, base, extra, above) => {
          const count = spreadRedundancy(popularity, base, extra, base + above);
          const spent = count.reduce((sum, pieces) => sum + pieces - base, 0);
          expect(spent).toBe(Math.min(extra, above * popularity.length));
          for (const [a, weightA] of popularity.entries()) {
            expect(count[a]).toBeLessThanOrEqual(base + above);
            for (const [b, weightB] of popularity.entries()) {
              if (weightA > weightB) expect(count[a]).toBeGreaterThanOrEqual(count[b]!);
            }
          }
        },
      ),
    );
  });
});

test("the imbalance counts against the average, or against the load that was needed", () => {
  expect(imbalancePercent([1, 1, 4])).toBe(100);
  expect(imbalancePercent([2, 2], 1)).toBe(100);
  expect(imbalancePercent([2, 2], 0)).toBe(0);
  expect(imbalancePercent([])).toBe(0);
});
