/** A policy with a mistake in it: the plan stays what it was. */
import { expect, test, vi } from "vitest";
import type { CachePlan, PlannerState } from "./plan.ts";

vi.mock("../policies/registry.ts", { spy: true });
// Another file of this process may have loaded both without the spy.
vi.resetModules();
const { createPolicy } = await import("../policies/registry.ts");
const { Planner } = await import("./planner.ts");

const object = {
  key: "a",
  version: "a-1",
  k: 2,
  m: 1,
  placement: ["r0", "r1", "r2"],
  stripes: 1,
  chunkBytes: 100,
  shardBytes: 100,
};

const plan = (before?: PlannerState): CachePlan =>
  new Planner({ policy: "exact", capacityBytes: 200, cacheMs: 5, delta: 0, slots: 4 }, before).plan({
    nowMs: 60_000,
    requests: [{ key: "a", requests: 1, popularity: 1 }],
    objects: new Map([["a", object]]),
    regions: ["r0", "r1", "r2"].map((name) => ({ name, meanMs: 100, sdMs: 0, down: false })),
    ledger: new Map(),
  });

test("a policy that throws, or overfills the cache, changes nothing, and the next period restarts it", () => {
  const { state, planned } = plan();
  expect(planned.map(({ chunks }) => chunks)).toEqual([[0, 1]]);
  vi.mocked(createPolicy).mockImplementationOnce((_name, cache) => ({
    onRequest: () => cache.keep(0, 1),
    onPeriod: () => cache.keep(0, 3),
  }));
  const broken = plan(state);
  expect(createPolicy).toHaveBeenCalledTimes(2);
  expect(broken.error).toMatchObject({ code: "INTERNAL", details: { d: 3, capacity: 200 } });
  expect(broken.planned.map(({ chunks }) => chunks)).toEqual([[0, 1]]);
  const next = plan(broken.state);
  expect(vi.mocked(createPolicy).mock.lastCall![3], "no snapshot").toBeUndefined();
  expect(next.error).toBeUndefined();
  expect(next.planned.map(({ chunks }) => chunks)).toEqual([[0, 1]]);
});
