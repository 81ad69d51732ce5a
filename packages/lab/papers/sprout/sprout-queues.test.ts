import { describe, expect, test } from "vitest";
import { seededRandom } from "@agarose/solver/random";
import { exponentialServer } from "@agarose/solver/internal/policies/papers/sprout/latency-bound";
import { optimizeSprout } from "@agarose/solver/internal/policies/papers/sprout/optimize";
import type { SproutFile } from "@agarose/solver/internal/policies/papers/sprout/files";
import { drawServers, simulateQueues, type QueueStudy } from "./queue-simulation.ts";

const RATES = [1, 1.5, 2, 3, 1, 2];

function study(files: readonly SproutFile[], reads = 60_000): QueueStudy {
  return {
    files,
    servers: RATES.length,
    serviceSeconds: (server, random) => random.exponential() / RATES[server]!,
    reads,
    seed: 3,
  };
}

describe("Sprout's queues", () => {
  test("one server is the M/M/1 queue", () => {
    const files = [{ readsPerSecond: 0.6, k: 1, servers: [0] }];
    const plan = { probability: [Float64Array.of(1, 0, 0, 0, 0, 0)] };
    const { meanSeconds, chunkHitRatio } = simulateQueues(study(files, 400_000), { plan });
    expect(Math.abs(meanSeconds / (1 / (1 - 0.6)) - 1)).toBeLessThan(0.05);
    expect(chunkHitRatio).toBe(0);
  });

  test("reads take no longer than Lemma 1 says, and less the more is cached", () => {
    const random = seededRandom(1);
    const files = Array.from({ length: 20 }, (_, i) => ({
      readsPerSecond: 0.06 / (1 + (i % 4)),
      k: 3,
      servers: random.shuffle([0, 1, 2, 3, 4, 5]).slice(0, 5),
    }));
    let before = Infinity;
    for (const capacity of [0, 15, 30, 45]) {
      const plan = optimizeSprout(files, RATES.map(exponentialServer), capacity);
      const { meanSeconds, chunkHitRatio } = simulateQueues(study(files), { plan });
      expect(meanSeconds).toBeLessThan(plan.meanBound);
      expect(meanSeconds).toBeGreaterThan(plan.meanBound / 2);
      expect(meanSeconds).toBeLessThan(before);
      expect(chunkHitRatio > 0).toBe(capacity > 0);
      before = meanSeconds;
    }
  });

  test("each server is asked with its probability, and different ones by one read", () => {
    const probability = Float64Array.of(0.25, 1, 0, 0.5, 0.75, 0.5);
    const random = seededRandom(2);
    const asked = new Float64Array(6);
    for (let n = 0; n < 40_000; n++) {
      const servers = drawServers(probability, random);
      expect(new Set(servers).size).toBe(3);
      for (const server of servers) asked[server]! += 1 / 40_000;
    }
    for (const [server, share] of asked.entries()) expect(share).toBeCloseTo(probability[server]!, 1);
  });

  test("an LRU of whole files hits by the share that fits when all are read alike", () => {
    const files = Array.from({ length: 40 }, () => ({ readsPerSecond: 0.01, k: 2, servers: [0, 1, 2] }));
    expect(simulateQueues(study(files), { lruFiles: 10 }).chunkHitRatio).toBeCloseTo(0.25, 1);
    expect(simulateQueues(study(files), { lruFiles: 40 }).meanSeconds).toBe(0);
    expect(simulateQueues(study(files), { lruFiles: 0 }).chunkHitRatio).toBe(0);
  });
});
