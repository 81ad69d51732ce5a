import { describe, expect, test } from "vitest";
import type { LatencyEstimate } from "../latency.ts";
import { planReadMs, planStripe, startCount, type Candidate } from "./read-plan.ts";
import type { ChunkSource, SourceKind } from "../sources/source.ts";

const CODE = { k: 4, m: 2 };

describe("planStripe", () => {
  test("orders chunks by the time of their source", () => {
    const sources = [source("slow", 300, [0, 1]), source("fast", 10, [2, 3]), source("middle", 100, [4, 5])];
    expect(names(plan(sources))).toEqual(["2 fast", "3 fast", "4 middle", "5 middle", "0 slow", "1 slow"]);
  });

  test("prefers data to parity if both take the same time, because parity costs a decode", () => {
    expect(names(plan([source("a", 100, [4, 5, 0, 1])]))).toEqual(["0 a", "1 a", "4 a", "5 a"]);
  });

  test("puts the best source of every chunk first, and second sources behind all of them", () => {
    const sources = [source("region", 50, [0, 1, 2]), source("edge", 5, [0, 2], "edge")];
    expect(names(plan(sources))).toEqual(["0 edge", "2 edge", "1 region", "0 region", "2 region"]);
  });

  test("puts sources that failed last, behind second sources of other chunks, too", () => {
    const sources = [
      source("failed", 1, [0, 1], "edge"),
      source("region", 500, [1, 2, 3]),
      source("peer", 900, [2], "peer"),
    ];
    expect(names(plan(sources, new Set(["failed"])))).toEqual([
      "1 region",
      "2 region",
      "3 region",
      "2 peer",
      "0 failed",
      "1 failed",
    ]);
  });

  test("ranks a functional chunk like any other that must be decoded", () => {
    const sources = [source("far", 100, [0, 1, 4]), source("cache", 10, [6, 255]), source("down", 1, [7])];
    const failed = new Set(["down"]);
    expect(names(plan(sources, failed))).toEqual(["6 cache", "255 cache", "0 far", "1 far", "4 far", "7 down"]);
  });

  test("uses each source's present latency, and whether it has the chunk of this stripe", () => {
    let meanMs = 10;
    const asked: number[] = [];
    const moody: ChunkSource = {
      ...source("moody", 0, []),
      get latency() {
        return { meanMs, sdMs: 0 };
      },
      has(stripe, chunk) {
        asked.push(stripe);
        return chunk < 2;
      },
    };
    const steady = source("steady", 50, [2]);
    expect(names(plan([moody, steady], undefined, 7))).toEqual(["0 moody", "1 moody", "2 steady"]);
    meanMs = 100;
    expect(names(plan([moody, steady], undefined, 7))).toEqual(["2 steady", "0 moody", "1 moody"]);
    expect(new Set(asked)).toEqual(new Set([7]));
  });

  test("spreads the load over equally good sources", () => {
    const sources = Array.from({ length: 6 }, (_, i) => source(`r${i}`, 100 + i / 10, [i]));
    const random = seededRandom(42);
    const firsts = new Map<string, number>();
    for (let i = 0; i < 600; i++) {
      for (const { source: used } of planStripe(CODE, i, sources, { random }).slice(0, 4)) {
        firsts.set(used.id, (firsts.get(used.id) ?? 0) + 1);
      }
    }
    // 2,400 requests over 6 sources are 400 each; parity is a decode behind, so it is asked somewhat less.
    expect(firsts.size).toBe(6);
    for (const count of firsts.values()) expect(count).toBeGreaterThan(200);
  });

  test("does not spread the load over worse sources", () => {
    const sources = [source("near", 100, [0, 1, 2, 3]), source("far", 120, [4, 5])];
    const random = seededRandom(1);
    for (let i = 0; i < 100; i++) {
      const first = planStripe(CODE, i, sources, { random }).slice(0, 4);
      expect(new Set(first.map((candidate) => candidate.source.id))).toEqual(new Set(["near"]));
    }
  });
});

describe("startCount", () => {
  const regions = Array.from({ length: 6 }, (_, i) => source(`r${i}`, 100, [i]));

  test("is k + delta if a region is among the best k", () => {
    expect(startCount(4, 1, plan(regions))).toBe(5);
    expect(startCount(4, 0, plan(regions))).toBe(4);
  });

  test("is the number of chunks if that is below k + delta", () => {
    expect(startCount(4, 5, plan(regions))).toBe(6);
    expect(startCount(4, 1, plan(regions.slice(0, 3)))).toBe(3);
    expect(startCount(4, 1, [])).toBe(0);
  });

  test("is k if caches have k chunks", () => {
    expect(
      startCount(4, 1, plan([source("edge", 5, [0, 1, 2], "edge"), source("peer", 20, [3], "peer"), ...regions])),
    ).toBe(4);
  });

  test("does not count a second source of a chunk", () => {
    const sources = [source("a", 10, [0, 1, 2, 3]), source("b", 20, [0, 1, 2, 3])];
    expect(startCount(4, 1, plan(sources))).toBe(4);
  });
});

describe("planReadMs", () => {
  test("is the mean of the slowest of the k fastest", () => {
    const sources = [10, 20, 30, 40, 50, 60].map((ms, i) => source(`r${i}`, ms, [i]));
    expect(planReadMs(4, 0, plan(sources))).toBe(40);
    expect(planReadMs(4, 2, plan(sources))).toBe(40);
  });

  test("is infinite with fewer than k chunks, however many sources offer them", () => {
    const sources = [source("a", 10, [0, 1, 2]), source("b", 20, [0, 1, 2])];
    expect(planReadMs(4, 1, plan(sources))).toBe(Number.POSITIVE_INFINITY);
  });
});

function source(id: string, meanMs: number, chunks: readonly number[], kind: SourceKind = "region"): ChunkSource {
  const latency: LatencyEstimate = { meanMs, sdMs: 0 };
  return {
    id,
    kind,
    latency,
    has: (_stripe, chunk) => chunks.includes(chunk),
    fetch: () => Promise.reject(new Error("a plan fetches nothing")),
  };
}

function plan(sources: readonly ChunkSource[], failed?: ReadonlySet<string>, stripe = 0): Candidate[] {
  return planStripe(CODE, stripe, sources, {
    health: { isAvoided: (id) => failed?.has(id) === true },
    random: () => 0,
  });
}

function names(candidates: readonly Candidate[]): string[] {
  return candidates.map(({ chunk, source: { id } }) => `${chunk} ${id}`);
}

function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
