/**
 * Redundancy by popularity within a budget of memory (EC-Cache, section 6.1), as PoPs have it: functional rows in the
 * cache, within its capacity, and moved when popularity changes (section 7.3).
 */
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { ObjectShape } from "./object-shape.ts";
import { Planner } from "./planner.ts";
import type { PlannerState } from "./plan.ts";

const LATENCY_MS = [80, 200, 600, 1400, 3400, 4600];
const REGIONS = LATENCY_MS.map((_, r) => `r${r}`);
const OBJECTS = 12;
const K = 4;

const shapes = Array.from({ length: OBJECTS }, (_, o): ObjectShape => {
  const placement = Array.from({ length: 6 }, (_region, chunk) => REGIONS[chunk]!);
  return { key: `o${o}`, version: `v${o}`, k: K, m: 2, placement, stripes: 1, chunkBytes: 100, shardBytes: 100 };
});

/** Rows cached of each object after one more period with these requests. */
function rowsAfter(requests: readonly number[], chunks: number, policy: string, nowMs: number, before?: PlannerState) {
  const options = { policy, capacityBytes: 100 * chunks, cacheMs: 5, delta: 1, functionalPop: 0, slots: OBJECTS };
  const { planned, state, error } = new Planner(options, before).plan({
    nowMs,
    requests: shapes.map(({ key }, o) => ({ key, requests: requests[o]!, popularity: requests[o]! })),
    objects: new Map(shapes.map((shape) => [shape.key, shape])),
    regions: LATENCY_MS.map((meanMs, r) => ({ name: REGIONS[r]!, meanMs, sdMs: 0.3 * meanMs, down: false })),
    ledger: new Map(),
  });
  expect(error).toBeUndefined();
  const rows = new Map(planned.map((kept) => [kept.object.key, kept.chunks.length]));
  return { state, rows: shapes.map(({ key }) => rows.get(key) ?? 0) };
}

test.each(["exact", "adaptive"])("%s gives hot objects more rows, and the budget holds while they change", (policy) => {
  let moved = 0;
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { minLength: OBJECTS, maxLength: OBJECTS }),
      fc.integer({ min: 1, max: OBJECTS * K }),
      (requests, chunks) => {
        let plan = rowsAfter(requests, chunks, policy, 60_000);
        const cooled = requests.toReversed();
        for (const [phase, asked] of [requests, cooled].entries()) {
          // As many periods as the estimates take to follow.
          for (let period = 0; period < 12; period++) {
            const nowMs = 60_000 * (2 + 12 * phase + period);
            plan = rowsAfter(asked, chunks, policy, nowMs, plan.state);
            expect(plan.rows.reduce((sum, d) => sum + d, 0)).toBeLessThanOrEqual(chunks);
          }
          const byHeat = asked.map((count, o) => [count, plan.rows[o]!] as const).toSorted(([a], [b]) => b - a);
          // Equal objects: one that is asked for more than twice as often has at least as many rows.
          for (const [hot, more] of byHeat) {
            for (const [cold, fewer] of byHeat) if (hot > 2 * cold + 20) expect(more).toBeGreaterThanOrEqual(fewer);
          }
        }
        if (plan.rows.join() !== rowsAfter(requests, chunks, policy, 60_000).rows.join()) moved++;
      },
    ),
    { numRuns: policy === "exact" ? 30 : 10 },
  );
  expect(moved).toBeGreaterThan(3);
});
