import { expect, test } from "vitest";
import { createPolicy } from "../registry.ts";
import { applyConfiguration, type PolicyCache } from "../../policy/policy.ts";
import { configureExactly } from "../../policy/configure.ts";
import { seededRandom } from "../../random.ts";

/** A cache of objects of k chunks each, which save more milliseconds the more of them are kept. */
function cacheOf(objects: number, k: number, capacity: number, saved: readonly Float64Array[]): PolicyCache {
  const count = new Int32Array(objects);
  return {
    objects,
    capacity,
    chunkWeight: new Float64Array(objects).fill(1),
    get used() {
      return count.reduce((sum, d) => sum + d, 0);
    },
    kOf: () => k,
    countOf: (object) => count[object]!,
    savedMs: (object, d) => saved[object]![d]!,
    keep: (object, d) => void (count[object] = d),
  };
}

/** Saved milliseconds by chunks: flat in places, as where the next chunk lies as far away as the last one. */
function savings(objects: number, k: number, seed: number): Float64Array[] {
  const random = seededRandom(seed);
  return Array.from({ length: objects }, () => {
    let sum = 0;
    return Float64Array.from(
      { length: k + 1 },
      (_, d) => (sum += d > 0 && random.next() < 0.6 ? 500 * random.next() : 0),
    );
  });
}

test.each([
  [2, 12, 1],
  [3, 30, 2],
  [6, 60, 3],
  [6, 100, 4],
])("one step keeps at least 1 - (2K - 1) / C of the optimum (Theorem 2): K = %i, C = %i", (k, capacity, seed) => {
  const objects = 3 * Math.ceil(capacity / k);
  const saved = savings(objects, k, seed);
  const cache = cacheOf(objects, k, capacity, saved);
  const random = seededRandom(seed);
  const requests = new Float64Array(objects);
  const valueOf = (): number => requests.reduce((sum, rate, o) => sum + rate * saved[o]![cache.countOf(o)]!, 0);
  let policy = createPolicy("online", cache, { decay: 1 });
  let steps = 0;
  let worst = 1;
  for (let n = 0; n < 600; n++) {
    // The theorem is about one step from the optimum of the counters before it.
    for (let o = 0; o < objects; o++) cache.keep(o, 0);
    applyConfiguration(cache, configureExactly(cache, requests).count);
    policy = createPolicy("online", cache, { decay: 1 }, policy.snapshot!());
    const asked = random.integer(objects) % (1 + random.integer(objects));
    const isFull = cache.used > capacity - k;
    requests[asked]! += 1;
    policy.onRequest(asked, n);
    const value = valueOf();
    for (let o = 0; o < objects; o++) cache.keep(o, 0);
    applyConfiguration(cache, configureExactly(cache, requests).count);
    const optimum = valueOf();
    if (isFull && optimum > 0) {
      steps++;
      worst = Math.min(worst, value / optimum);
    }
  }
  expect(steps).toBeGreaterThan(200);
  expect(worst).toBeGreaterThanOrEqual(1 - (2 * k - 1) / capacity);
  // The bound is no empty promise: some step does fall short of the optimum.
  expect(worst).toBeLessThan(1);
});
