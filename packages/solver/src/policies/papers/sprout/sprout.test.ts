import { describe, expect, test } from "vitest";
import { seededRandom } from "../../../random.ts";
import { excess, exponentialServer, latencyBound, lognormalServer, queueMoments } from "./latency-bound.ts";
import { optimizeSprout } from "./optimize.ts";
import type { SproutFile } from "./files.ts";

describe("Sprout's bound (Lemma 1)", () => {
  test("an exponential server is the M/M/1 queue: mean 1/(mu - lambda), variance its square", () => {
    const { mean, variance } = queueMoments(exponentialServer(2), 1.5);
    expect(mean).toBeCloseTo(1 / 0.5, 12);
    expect(variance).toBeCloseTo(1 / 0.25, 12);
    expect(queueMoments(exponentialServer(2), 2)).toEqual({ mean: Infinity, variance: Infinity });
  });

  test("servers side by side share the arrivals; with infinitely many no chunk waits", () => {
    const server = lognormalServer(2, 1);
    expect(queueMoments({ ...server, parallel: 4 }, 1)).toEqual(queueMoments(server, 0.25));
    const { mean, variance } = queueMoments({ ...server, parallel: Infinity }, 1e9);
    expect([mean, variance]).toEqual([2, expect.closeTo(1, 12)]);
  });

  test("is the least over z: no other z gives less, also where nothing is uncertain", () => {
    const random = seededRandom(7);
    for (let n = 0; n < 300; n++) {
      const queues = Array.from({ length: 1 + random.integer(6) }, () => ({
        mean: 100 * random.next(),
        variance: random.next() < 0.3 ? 0 : 1000 * random.next(),
      }));
      const probability = Float64Array.from(queues, () => (random.next() < 0.5 ? 1 : random.next()));
      const { bound, z } = latencyBound(probability, queues);
      const at = (other: number): number =>
        queues.reduce((sum, queue, j) => sum + probability[j]! * excess(queue, other), other);
      expect(at(z)).toBeCloseTo(bound, 9);
      for (let other = 0; other <= 250; other += 2.5) expect(at(other)).toBeGreaterThanOrEqual(bound - 1e-6);
    }
  });

  test("is the longest time when no time varies and the read waits for all", () => {
    const queues = [10, 30, 20].map((mean) => ({ mean, variance: 0 }));
    expect(latencyBound(Float64Array.of(1, 1, 1), queues).bound).toBeCloseTo(30, 9);
    expect(latencyBound(Float64Array.of(1, 0, 1), queues).bound).toBeCloseTo(20, 9);
  });

  test("is 0 without servers, and Infinity at an overloaded server", () => {
    const queues = [queueMoments(exponentialServer(1), 2)];
    expect(latencyBound(Float64Array.of(0), queues).bound).toBe(0);
    expect(latencyBound(Float64Array.of(1), queues).bound).toBe(Infinity);
  });

  test("is above the simulated mean of the slowest of several chunks, and not absurdly so", () => {
    const rates = [1, 1.5, 2, 3];
    const queues = rates.map((rate) => queueMoments(exponentialServer(rate), 0.4 * rate));
    const { bound } = latencyBound(Float64Array.of(1, 1, 1, 1), queues);
    const random = seededRandom(2);
    let sum = 0;
    const draws = 50_000;
    // Time in an M/M/1 queue is exponential with the queue's mean.
    for (let n = 0; n < draws; n++) sum += Math.max(...queues.map((queue) => queue.mean * random.exponential()));
    expect(bound).toBeGreaterThan(sum / draws);
    expect(bound).toBeLessThan((2 * sum) / draws);
  });
});

describe("Sprout's optimiser", () => {
  const random = seededRandom(4);
  const servers = [0.1, 0.1, 0.09, 0.08, 0.08, 0.07, 0.07, 0.06].map(exponentialServer);
  const files: SproutFile[] = Array.from({ length: 24 }, (_, i) => ({
    readsPerSecond: 0.002 / (1 + (i % 6)),
    k: 3,
    servers: random.shuffle([0, 1, 2, 3, 4, 5, 6, 7]).slice(0, 5),
  }));

  test("the bound falls as the cache grows, to nothing when all fits", () => {
    const bounds = [0, 6, 12, 24, 48, 72].map((capacity) => optimizeSprout(files, servers, capacity).meanBound);
    for (let c = 1; c < bounds.length; c++) expect(bounds[c], `${c}`).toBeLessThan(bounds[c - 1]!);
    expect(bounds.at(-1)).toBe(0);
  });

  test("probabilities are sound, add up to k - d, and the cache is not overfilled", () => {
    const { cached, probability } = optimizeSprout(files, servers, 20);
    expect(cached.reduce((sum, d) => sum + d, 0)).toBeLessThanOrEqual(20);
    for (const [i, file] of files.entries()) {
      expect(probability[i]!.reduce((sum, pi) => sum + pi, 0)).toBeCloseTo(file.k - cached[i]!, 6);
      for (const [j, pi] of probability[i]!.entries()) {
        expect(pi).toBeGreaterThanOrEqual(0);
        expect(pi).toBeLessThanOrEqual(1 + 1e-9);
        if (!file.servers.includes(j)) expect(pi).toBe(0);
      }
    }
  });

  test("asks servers better than evenly, and caches what is read most", () => {
    const even = files.map((file) => {
      const probability = new Float64Array(servers.length);
      for (const j of file.servers) probability[j] = file.k / file.servers.length;
      return probability;
    });
    const loads = servers.map((_, j) => files.reduce((sum, file, i) => sum + file.readsPerSecond * even[i]![j]!, 0));
    const queues = servers.map((server, j) => queueMoments(server, loads[j]!));
    const rate = files.reduce((sum, file) => sum + file.readsPerSecond, 0);
    const evenly = files.reduce(
      (sum, file, i) => sum + (file.readsPerSecond / rate) * latencyBound(even[i]!, queues).bound,
      0,
    );
    expect(optimizeSprout(files, servers, 0).meanBound).toBeLessThan(0.98 * evenly);
    const { cached } = optimizeSprout(files, servers, 20);
    const kept = (of: number): number => cached.reduce((sum, d, i) => sum + (i % 6 === of ? d : 0), 0);
    expect(kept(0)).toBeGreaterThan(kept(5));
  });

  test("the best round is kept, and rounds end when they gain no more", () => {
    const { rounds, meanBound } = optimizeSprout(files, servers, 20);
    expect(rounds.length).toBeGreaterThan(1);
    expect(rounds.length).toBeLessThan(20);
    expect(meanBound).toBeLessThanOrEqual(Math.min(...rounds));
    expect(optimizeSprout(files, servers, 20, { roundsMax: 1 }).rounds).toEqual(rounds.slice(0, 1));
  });

  test("a file of heavier chunks has to be worth its room", () => {
    const alike = files.map((file) => ({ ...file, readsPerSecond: 0.001 }));
    const heavy = alike.map((file, i) => ({ ...file, chunkWeight: i % 2 === 0 ? 3 : 1 }));
    const { cached } = optimizeSprout(heavy, servers, 18);
    const kept = (of: number): number => cached.reduce((sum, d, i) => sum + (i % 2 === of ? d : 0), 0);
    expect(kept(1)).toBeGreaterThan(kept(0));
    expect(3 * kept(0) + kept(1)).toBeLessThanOrEqual(18);
  });

  test("nothing to read takes no time", () => {
    expect(optimizeSprout([], servers, 5)).toMatchObject({ meanBound: 0, probability: [] });
    expect(optimizeSprout([{ ...files[0]!, readsPerSecond: 0 }], servers, 0).meanBound).toBe(0);
  });

  test("refuses overload and malformed files", () => {
    const busy = files.map((file) => ({ ...file, readsPerSecond: 1 }));
    expect(() => optimizeSprout(busy, servers, 0)).toThrow(expect.objectContaining({ code: "SCENARIO_INVALID" }));
    expect(() => optimizeSprout([{ ...files[0]!, k: 6 }], servers, 0)).toThrow(
      expect.objectContaining({ code: "SCENARIO_INVALID", details: { file: 0 } }),
    );
    for (const capacity of [-1, NaN, Infinity, 0.5, 2 ** 53]) {
      expect(() => optimizeSprout(files, servers, capacity)).toThrow(
        `capacity must be an integer >= 0, got ${capacity}`,
      );
    }
    for (const readsPerSecond of [NaN, -1, Infinity]) {
      expect(() => optimizeSprout([{ ...files[0]!, readsPerSecond }], servers, 1)).toThrow("file 0");
    }
    for (const chunkWeight of [NaN, 0, -1, 0.5, Infinity]) {
      expect(() => optimizeSprout([{ ...files[0]!, chunkWeight }], servers, 1)).toThrow("file 0");
    }
    for (const own of [
      [0, 0, 1],
      [0, 1, 8],
      [0, 1, -1],
      [0, 1, 0.5],
      [0, 1],
    ]) {
      expect(() => optimizeSprout([{ ...files[0]!, servers: own }], servers, 1)).toThrow("file 0");
    }
    for (const moments of [
      { mean: 0 },
      { mean: NaN },
      { secondMoment: 1 },
      { thirdMoment: Infinity },
      { parallel: 0 },
    ]) {
      const wrong = [{ ...servers[0]!, ...moments }, ...servers.slice(1)];
      expect(() => optimizeSprout(files, wrong, 1)).toThrow("server 0");
    }
  });
});
