import { describe, expect, test } from "vitest";
import { imbalancePercent } from "@agarose/solver/planner";
import { solveKnapsack } from "@agarose/solver/knapsack";
import { clearMarket, countPartitions, forEachPartition, solveByPartitions } from "./liu-partitions.ts";
import { seededRandom } from "@agarose/solver/random";

describe("Liu's partitions", () => {
  test("their number is that of the paper's Table II", () => {
    expect([60, 80, 100, 120].map((capacity) => countPartitions(capacity, 6))).toEqual([
      19_858, 69_624, 189_509, 436_140,
    ]);
  });

  test("those of one online step, K + 1 objects sharing 2K - 1 chunks, are as many as the paper's largest", () => {
    expect([2, 4, 6, 8].map((k) => countPartitions(2 * k - 1, k, k + 1))).toEqual([2, 9, 37, 127]);
  });

  test("enumeration and count agree, and every partition fills the cache", () => {
    let seen = 0;
    forEachPartition(17, 4, (pieces) => {
      seen++;
      expect(pieces.reduce((sum, piece) => sum + piece, 0)).toBe(17);
      expect(Math.max(...pieces)).toBeLessThanOrEqual(4);
    });
    expect(seen).toBe(countPartitions(17, 4));
    for (const piecesMax of [4, 5, 9, 17, 30]) {
      let few = 0;
      forEachPartition(17, 4, (pieces) => (few += pieces.length <= piecesMax ? 1 : 0));
      expect(countPartitions(17, 4, piecesMax)).toBe(few);
    }
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

  test("prices clear the market: every piece has what it likes best at them, and unsold objects are free", () => {
    let contested = 0;
    for (let seed = 1; seed <= 200; seed++) {
      const random = seededRandom(seed);
      const [pieces, objects] = [1 + random.integer(6), 1 + random.integer(6)];
      const worth = Array.from({ length: pieces }, () => Array.from({ length: objects }, () => random.integer(20)));
      const { value, objectOf, price } = clearMarket(worth);
      for (const [piece, own] of worth.entries()) {
        const payoff = (object: number): number => (object < 0 ? 0 : own[object]! - price[object]!);
        const best = Math.max(0, ...own.map((_, object) => payoff(object)));
        expect(payoff(objectOf[piece]!)).toBeGreaterThanOrEqual(best - 1 / (pieces + 1) - 1e-9);
      }
      for (const [object, own] of price.entries()) if (!objectOf.includes(object)) expect(own).toBe(0);
      expect(new Set(objectOf.filter((object) => object >= 0)).size).toBe(objectOf.filter((o) => o >= 0).length);
      expect(value).toBe(bestAssignment(worth));
      if (price.some((own) => own > 1)) contested++;
    }
    expect(contested).toBeGreaterThan(100);
  });

  test("nothing to cache is worth nothing", () => {
    expect(solveByPartitions([], 5)).toBe(0);
    expect(solveByPartitions([[0]], 5)).toBe(0);
    expect(solveByPartitions([[0, 3]], 0)).toBe(0);
    expect(countPartitions(0, 3)).toBe(1);
  });
});

/** Tries every assignment of pieces to different objects, or to none. */
function bestAssignment(worth: readonly (readonly number[])[], piece = 0, taken: readonly number[] = []): number {
  if (piece === worth.length) return 0;
  let best = bestAssignment(worth, piece + 1, taken);
  for (const [object, own] of worth[piece]!.entries()) {
    if (taken.includes(object)) continue;
    best = Math.max(best, own + bestAssignment(worth, piece + 1, [...taken, object]));
  }
  return best;
}

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

/** Which servers a read loads, with how much of the object each. */
interface ServerShare {
  readonly server: number;
  readonly share: number;
}

/** The loads of all servers after the reads. */
function serverLoads(servers: number, reads: Iterable<readonly ServerShare[]>): Float64Array {
  const load = new Float64Array(servers);
  for (const read of reads) for (const { server, share } of read) load[server]! += share;
  return load;
}

/**
 * Variance of a server's load when every object is cut into k pieces, relative to whole objects. Theorem 1 gives 1/k
 * for pieces placed independently. On k distinct servers of S it is (1/k) (1 - k/S) / (1 - 1/S).
 */
function splitVarianceRatio(k: number, servers: number, isDistinct: boolean): number {
  return isDistinct ? (1 / k) * ((1 - k / servers) / (1 - 1 / servers)) : 1 / k;
}
