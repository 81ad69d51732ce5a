/** Whatever happens from period to period, a plan fits, is of chunks that exist, and no policy breaks. */
import { POLICY_NAMES } from "../policies/names.ts";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import type { CachedObject, ObjectShape } from "./object-shape.ts";
import { Planner } from "./planner.ts";
import type { PlannerState } from "./plan.ts";

const REGIONS = ["r0", "r1", "r2"];
const KEYS = 6;
/** Fewer than there are keys, so that objects lose their slots. */
const SLOTS = 4;

const object = fc.record({
  version: fc.integer({ min: 0, max: 4 }),
  k: fc.integer({ min: 1, max: 5 }),
  m: fc.integer({ min: 0, max: 3 }),
  chunkBytes: fc.integer({ min: 1, max: 50 }),
});
const period = fc.record({
  policy: fc.constantFrom(...POLICY_NAMES),
  passedMs: fc.constantFrom(60_000, 60_000, -300_000, 3_600_000, 90_000_000),
  capacityBytes: fc.integer({ min: 0, max: 400 }),
  functionalPop: fc.constantFrom(undefined, undefined, 3),
  requests: fc.array(fc.integer({ min: 0, max: 30 }), { minLength: KEYS, maxLength: KEYS }),
  /** Undefined: gone; null: not looked up. */
  objects: fc.array(fc.oneof({ weight: 4, arbitrary: object }, fc.constant(undefined), fc.constant(null)), {
    minLength: KEYS,
    maxLength: KEYS,
  }),
  regionMs: fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 3, maxLength: 3 }),
  down: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  /** Whether what was planned is in the cache by the next period. */
  isFilled: fc.boolean(),
});

test("for every policy, with objects that come, change and go, clocks that jump, and capacities that shrink", () => {
  let planned = 0;
  fc.assert(
    fc.property(fc.array(period, { minLength: 1, maxLength: 6 }), (periods) => {
      let state: PlannerState | undefined;
      let nowMs = 1e9;
      let ledger = new Map<string, CachedObject>();
      for (const { policy, capacityBytes, functionalPop, requests, objects, regionMs, down, ...rest } of periods) {
        nowMs += rest.passedMs;
        const shapes = objects.flatMap((drawn, o): [string, ObjectShape | undefined][] => {
          if (drawn === null) return [];
          return [[`o${o}`, drawn && shapeOf(o, drawn)]];
        });
        const options = { policy, capacityBytes, slots: SLOTS, cacheMs: 5, delta: 1, functionalPop };
        const plan = new Planner(options, state).plan({
          nowMs,
          requests: requests.map((count, o) => ({ key: `o${o}`, requests: count, popularity: count })),
          objects: new Map(shapes),
          regions: REGIONS.map((name, r) => ({ name, meanMs: regionMs[r]!, sdMs: r, down: down[r]! })),
          ledger,
        });
        expect(plan.error).toBeUndefined();
        state = plan.state;
        let bytes = 0;
        for (const { object: kept, chunks, worth } of plan.planned) {
          planned++;
          bytes += chunks.length * kept.chunkBytes;
          expect(worth).toBeGreaterThanOrEqual(0);
          expect(chunks).toEqual([...new Set(chunks)].toSorted((a, b) => a - b));
          expect(chunks.length).toBeLessThanOrEqual(kept.k);
          expect(chunks.every((chunk) => chunk < 256)).toBe(true);
        }
        expect(bytes).toBeLessThanOrEqual(capacityBytes);
        if (rest.isFilled) ledger = new Map(plan.planned.map(({ object: kept, chunks }) => entryOf(kept, chunks)));
      }
    }),
    { numRuns: 400 },
  );
  expect(planned).toBeGreaterThan(1_000);
});

function shapeOf(
  o: number,
  { version, k, m, chunkBytes }: Pick<ObjectShape, "k" | "m" | "chunkBytes"> & { version: number },
): ObjectShape {
  const placement = Array.from({ length: k + m }, (_, chunk) => REGIONS[(chunk + o) % 3]!);
  // Some versions are of several keys. A version covers content and code, not where the chunks are.
  const name = version === 0 ? `shared-${k}-${m}-${chunkBytes}` : `o${o}-${version}-${k}-${m}-${chunkBytes}`;
  return { key: `o${o}`, version: name, k, m, placement, stripes: 1, chunkBytes, shardBytes: chunkBytes };
}

function entryOf({ version }: ObjectShape, chunks: readonly number[]): [string, CachedObject] {
  return [version, { stripes: 1, chunks, target: chunks, done: 1 }];
}
