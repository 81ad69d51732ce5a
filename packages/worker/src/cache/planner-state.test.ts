import { Planner, type PlannerState } from "@agarose/solver/planner";
import { expect, test } from "vitest";
import { decodePlannerState, encodePlannerState } from "./planner-state.ts";

const REGIONS = ["r0", "r1", "r2"];

function planned(before?: PlannerState): PlannerState {
  const object = { version: "v", k: 2, m: 1, placement: REGIONS, stripes: 1, chunkBytes: 100, shardBytes: 100 };
  const objects = ["a", "b"].map((key) => ({ ...object, key, version: `${key}-1` }));
  return new Planner({ policy: "adaptive", capacityBytes: 300, cacheMs: 5, delta: 0, slots: 4 }, before).plan({
    nowMs: 60_000,
    requests: objects.map(({ key }, o) => ({ key, requests: 30 + o, popularity: 30 + o })),
    objects: new Map(objects.map((shape) => [shape.key, shape])),
    regions: REGIONS.map((name) => ({ name, meanMs: 100, sdMs: 1, down: false })),
    ledger: new Map(),
  }).state;
}

test("bytes bring back the state that they were made of, and the next plan is the same", () => {
  const state = planned();
  const decoded = decodePlannerState(encodePlannerState(state));
  expect(decoded).toEqual(state);
  expect(state.slots.map(({ d }) => d)).toContain(2);
  expect(planned(decoded)).toEqual(planned(state));
  const { snapshot: _none, ...rest } = state;
  expect(decodePlannerState(encodePlannerState({ ...rest, snapshot: undefined }))).toEqual({
    ...rest,
    snapshot: undefined,
  });
});

test("unreadable bytes count as none", () => {
  expect(decodePlannerState(new TextEncoder().encode("<html>"))).toBeUndefined();
  expect(decodePlannerState(new Uint8Array(0))).toBeUndefined();
  expect(decodePlannerState(encodePlannerState(planned()).slice(0, 40))).toBeUndefined();
});
