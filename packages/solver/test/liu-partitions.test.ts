import { describe, expect, test } from "vitest";
import { imbalancePercent, serverLoads, splitVarianceRatio } from "../src/load-balance.ts";
import { solveKnapsack } from "../src/knapsack.ts";
import { countPartitions, forEachPartition, solveByPartitions } from "../src/policies/liu-partitions.ts";
import { seededRandom } from "../src/random.ts";

describe("Liu's partitions", () => {
  test("their number is that of the paper's Table II", () => {
    expect([60, 80, 100, 120].map((capacity) => countPartitions(capacity, 6))).toEqual([
      19_858, 69_624, 189_509, 436_140,
    ]);
  });

  test("enumeration and count agree, and every partition fills the cache", () => {
    let seen = 0;
    forEachPartition(17, 4, (pieces) => {
      seen++;
      expect(pieces.reduce((sum, piece) => sum + piece, 0)).toBe(17);
      expect(Math.max(...pieces)).toBeLessThanOrEqual(4);
    });
    expect(seen).toBe(countPartitions(17, 4));
  });

  test("partition and assignment find what the exact knapsack finds", () => {
    for (let seed = 1; seed <= 40; seed++) {
      const random = seededRandom(seed);
      const objects = 2 + random.integer(5);
      const k = 1 + random.integer(4);
      const capacity = 1 + random.integer(objects * k);
      // Values grow with d, as caching more chunks never slows a read down.
      const value = Array.from({ length: objects }, () => {
        let sum = 0;
        return [0, ...Array.from({ length: k }, () => (sum += random.integer(30)))];
      });
      const exact = solveKnapsack({
        capacity,
        start: Uint32Array.from({ length: objects + 1 }, (_, i) => i * k),
        weights: Float64Array.from({ length: objects * k }, (_, j) => 1 + (j % k)),
        values: Float64Array.from(value.flatMap((own) => own.slice(1))),
      });
      expect(solveByPartitions(value, capacity), `seed ${seed}`).toBe(exact.value);
    }
  });
});

describe("load balance", () => {
  test("imbalance is the distance of the busiest server from the average", () => {
    expect(imbalancePercent([1, 1, 4])).toBe(100);
    expect(imbalancePercent([2, 2])).toBe(0);
    expect(imbalancePercent([])).toBe(0);
  });

  test.each([false, true])(
    "Theorem 1: splitting in k divides the variance of the load (distinct servers: %s)",
    (isDistinct) => {
      const [servers, k, objects, trials] = [12, 4, 30, 6000];
      const random = seededRandom(5);
      const variance = (pieces: number): number => {
        const all: number[] = [];
        for (let t = 0; t < trials; t++) {
          const reads = Array.from({ length: objects }, () => {
            const order = random.shuffle(Array.from({ length: servers }, (_, s) => s));
            return Array.from({ length: pieces }, (_, p) => ({
              server: isDistinct ? order[p]! : random.integer(servers),
              share: 1 / pieces,
            }));
          });
          all.push(serverLoads(servers, reads)[0]!);
        }
        const mean = all.reduce((sum, load) => sum + load, 0) / trials;
        return all.reduce((sum, load) => sum + (load - mean) ** 2, 0) / trials;
      };
      const measured = variance(k) / variance(1);
      expect(Math.abs(measured / splitVarianceRatio(k, servers, isDistinct) - 1)).toBeLessThan(0.1);
    },
  );
});
