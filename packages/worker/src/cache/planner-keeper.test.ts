import { concat } from "@agarose/core/format";
import type { PlannerOptions } from "@agarose/solver/planner";
import { expect, test, vi } from "vitest";
import { encodePlannerState } from "./planner-state.ts";
import { PlannerKeeper } from "./planner-keeper.ts";

const options: PlannerOptions = { policy: "exact", capacityBytes: 300, cacheMs: 5, delta: 0, slots: 4 };

const object = { key: "a", version: "a-1", k: 2, m: 1, placement: ["x", "y", "z"], stripes: 1 };
const input = {
  nowMs: 60_000,
  requests: [{ key: "a", requests: 3, popularity: 3 }],
  objects: new Map([["a", { ...object, chunkBytes: 100, shardBytes: 100 }]]),
  regions: ["x", "y", "z"].map((name) => ({ name, meanMs: 50, sdMs: 0, down: false })),
  ledger: new Map(),
};

test("loads the saved state once, and again after other options or a plan that has failed", async () => {
  let saved: Uint8Array | undefined;
  const load = vi.fn(async () => saved);
  const keeper = new PlannerKeeper();
  const planner = await keeper.planner(options, load);
  saved = concat([...encodePlannerState(planner.plan(input).state)]);
  expect(await keeper.planner({ ...options, cacheMs: 6 }, load)).toBe(planner);
  expect(load).toHaveBeenCalledTimes(1);

  const other = await keeper.planner({ ...options, capacityBytes: 200 }, load);
  expect(other).not.toBe(planner);
  expect(other.knows("a"), "it continues from what was saved").toBe(true);

  keeper.forget();
  const restored = await keeper.planner({ ...options, capacityBytes: 200 }, load);
  expect(restored).not.toBe(other);
  expect(restored.knows("a")).toBe(true);
  expect(load).toHaveBeenCalledTimes(3);
});

test("saves after the first period of an instance, and then the less often the more is known", async () => {
  const keeper = new PlannerKeeper();
  await keeper.planner(options, async () => undefined);
  const saves = (known: number): boolean[] => Array.from({ length: 5 }, () => keeper.mustSave(known));
  expect(saves(100)).toEqual([true, true, true, true, true]);
  expect(saves(8_000)).toEqual([false, true, false, true, false]);
  keeper.forget();
  await keeper.planner(options, async () => undefined);
  expect(saves(1_000_000)).toEqual([true, false, false, false, false]);
});
