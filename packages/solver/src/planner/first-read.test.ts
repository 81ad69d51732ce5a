/** The cost of the first read of a cached value decides which seldom-read objects a cache keeps. */
import { expect, test } from "vitest";
import { Planner } from "./planner.ts";

const REGIONS = ["a", "b", "c"];

function keptOf(popularity: number, firstMs: number | undefined): number {
  const code = { k: 2, m: 1, placement: REGIONS };
  const object = { key: "x", version: "v", ...code, stripes: 1, chunkBytes: 100, shardBytes: 100 };
  const firstRead = firstMs === undefined ? undefined : { ms: firstMs, periods: 60 };
  const planner = new Planner({ policy: "exact", capacityBytes: 1_000, cacheMs: 5, firstRead, delta: 0 });
  const { planned } = planner.plan({
    nowMs: 60_000,
    requests: [{ key: "x", requests: 1, popularity }],
    objects: new Map([["x", object]]),
    regions: REGIONS.map((name) => ({ name, meanMs: 40, sdMs: 0, down: false })),
    ledger: new Map(),
  });
  return planned.find(({ object: { key } }) => key === "x")?.chunks.length ?? 0;
}

test.each([
  // Of reads once in ten periods, a seventh are first reads; of those once in a hundred, three fifths.
  { popularity: 10, firstMs: 150, kept: 2 },
  { popularity: 0.1, firstMs: 150, kept: 2 },
  { popularity: 0.01, firstMs: 150, kept: 0 },
  { popularity: 0.01, firstMs: 30, kept: 2 },
  { popularity: 0.01, firstMs: undefined, kept: 2 },
])(
  "of regions 40 ms away, $popularity requests a period and first reads of $firstMs ms, $kept chunks are kept",
  (at) => {
    expect(keptOf(at.popularity, at.firstMs)).toBe(at.kept);
  },
);
