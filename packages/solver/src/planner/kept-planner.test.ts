/** A planner that stays in memory decides as one that is restored before each plan. */
import { expect, test } from "vitest";
import { peerView } from "../cooperation/peer-view.ts";
import { seededRandom } from "../random.ts";
import type { CachedObject, ObjectShape } from "./object-shape.ts";
import type { PlannerOptions, PlannerState } from "./plan.ts";
import { Planner } from "./planner.ts";

const OBJECTS = 60;
const REGIONS = ["near", "mid", "far"];
const options: PlannerOptions = {
  policy: "adaptive",
  capacityBytes: 20_000,
  cacheMs: 5,
  firstRead: { ms: 80, periods: 60 },
  delta: 1,
  functionalPop: 0,
  slots: OBJECTS,
};

const shapes = new Map(
  Array.from({ length: OBJECTS }, (_, o): [string, ObjectShape] => {
    const chunkBytes = 300 + 97 * (o % 13);
    const shape = { key: `k${o}`, version: `v${o}`, k: 2, m: 1, placement: REGIONS, stripes: 1 };
    return [shape.key, { ...shape, chunkBytes, shardBytes: chunkBytes }];
  }),
);

/** A peer that reads some of the objects, and holds a chunk of others. */
const peers = peerView({
  pop: "a",
  cacheMs: 5,
  delta: 1,
  peers: [
    {
      name: "b",
      meanMs: 30,
      sdMs: 3,
      held: new Map([
        ["v3", [1]],
        ["v5", [0]],
      ]),
      popularity: {
        popular: [
          ["k2", 3],
          ["k3", 1],
          ["k9", 2],
        ],
        regions: REGIONS.map((name) => ({ name, meanMs: 70, sdMs: 5, down: false })),
        peers: [{ name: "a", meanMs: 30, sdMs: 3, down: false }],
      },
    },
  ],
});

const planOf = ({ planned }: ReturnType<Planner["plan"]>): string[] =>
  planned.map(({ object, chunks }) => `${object.key}: ${chunks.join()}`);

test.each(["adaptive", "exact", "lru", "lfu", "online", "agar", "c2p"])("%s", (policy) => {
  const kept = new Planner({ ...options, policy });
  let state: PlannerState | undefined;
  let ledger = new Map<string, CachedObject>();
  const random = seededRandom(4);
  let plans = 0;
  for (let step = 1; step <= 40; step++) {
    const now = {
      ...options,
      policy,
      // The cache becomes slower, by less than counts at first.
      cacheMs: step < 20 ? 5 + 0.01 * step : 40,
    };
    const requests = Array.from({ length: OBJECTS }, (_, o) => {
      const count = Math.floor((8 / (1 + o)) * 2 * random.next());
      return { key: `k${o}`, requests: count, popularity: 0.8 * count };
    });
    const input = {
      nowMs: step * 5_000,
      requests,
      objects: shapes,
      regions: REGIONS.map((name, r) => ({ name, meanMs: 50 * (r + 1 + Number(step > 30)), sdMs: 5, down: false })),
      ledger,
      ...(step > 24 ? { peers } : {}),
      isExchange: step % 4 !== 0,
      mayChange: step % 12 !== 8,
    };
    expect(kept.configure(now)).toBe(true);
    const restored = new Planner({ ...now, cacheMs: step < 20 ? 5 : 40 }, state).plan(input);
    const plan = kept.plan(input);
    expect(plan.error).toBeUndefined();
    expect(planOf(plan)).toEqual(planOf(restored));
    state = restored.state;
    expect(plan.state).toEqual(state);
    plans += plan.planned.length;
    if (input.isExchange) continue;
    ledger = new Map(
      plan.planned.map(({ object, chunks }) => [object.version, { stripes: 1, chunks, target: chunks, done: 1 }]),
    );
  }
  expect(plans).toBeGreaterThan(100);
});

test("other options for life need another planner", () => {
  const planner = new Planner(options);
  expect(planner.configure({ ...options, cacheMs: 9, delta: 0 })).toBe(true);
  for (const other of [{ policy: "exact" }, { capacityBytes: 1 }, { slots: 5 }, { functionalPop: 1 }]) {
    expect(planner.configure({ ...options, ...other }), JSON.stringify(other)).toBe(false);
  }
});
