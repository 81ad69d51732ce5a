import { describe, expect, test } from "vitest";
import { populate } from "./agar.ts";
import { configureExactly } from "../../policy/configure.ts";
import type { PolicyCache } from "../../policy/policy.ts";
import { seededRandom } from "../../random.ts";

function cacheOf(saved: number[][], capacity: number): PolicyCache {
  return {
    objects: saved.length,
    capacity,
    chunkWeight: new Float64Array(saved.length).fill(1),
    used: 0,
    kOf: (object) => saved[object]!.length - 1,
    countOf: () => 0,
    savedMs: (object, d) => saved[object]![d]!,
    keep: () => undefined,
  };
}

function valueOf(cache: PolicyCache, popularity: Float64Array, count: Uint8Array): number {
  return count.reduce((sum, d, object) => sum + (d > 0 ? popularity[object]! * cache.savedMs(object, d) : 0), 0);
}

describe("Agar's POPULATE", () => {
  test("never beats the exact solver, never overfills, and comes near without the early stop", () => {
    let worst = 1;
    let total = 0;
    const runs = 60;
    for (let seed = 1; seed <= runs; seed++) {
      const random = seededRandom(seed);
      const k = 2 + random.integer(4);
      const saved = Array.from({ length: 12 }, () => {
        const steps = Array.from({ length: k }, () => random.next() ** 2 * 100);
        return [0, ...steps.map((_, d) => steps.slice(0, d + 1).reduce((sum, step) => sum + step, 0))];
      });
      const cache = cacheOf(saved, 4 + random.integer(12));
      const popularity = Float64Array.from({ length: 12 }, () => 1 + random.integer(20));
      const count = populate(cache, popularity, false);
      expect(count.reduce((sum, d) => sum + d, 0)).toBeLessThanOrEqual(cache.capacity);
      const best = configureExactly(cache, popularity).solution.value;
      const share = valueOf(cache, popularity, count) / best;
      expect(share).toBeLessThanOrEqual(1 + 1e-12);
      worst = Math.min(worst, share);
      total += share;
    }
    expect(worst).toBeGreaterThan(0.7);
    expect(total / runs).toBeGreaterThan(0.93);
  });

  test("takes the only option that fits", () => {
    const cache = cacheOf([[0, 5, 50]], 1);
    expect([...populate(cache, Float64Array.of(1), false)]).toEqual([1]);
  });

  test("an empty cache or nothing asked for gives an empty configuration", () => {
    expect([...populate(cacheOf([[0, 5]], 0), Float64Array.of(1), false)]).toEqual([0]);
    expect([...populate(cacheOf([[0, 5]], 3), Float64Array.of(0), true)]).toEqual([0]);
  });
});
