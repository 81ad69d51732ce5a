import { concat } from "@agarose/core/format";
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

const bytesOf = (state: PlannerState): Uint8Array => concat([...encodePlannerState(state)]);

test("bytes bring back the state that they were made of, and the next plan is the same", () => {
  const state = planned();
  const decoded = decodePlannerState(bytesOf(state));
  expect(decoded).toEqual(state);
  expect(state.slots.map(({ d }) => d)).toContain(2);
  expect(planned(decoded)).toEqual(planned(state));
  const { snapshot: _none, ...rest } = state;
  expect(decodePlannerState(bytesOf({ ...rest, snapshot: undefined }))).toEqual({
    ...rest,
    snapshot: undefined,
  });
});

test("many slots with several placements come in pieces", () => {
  const [{ content, ...slot }] = planned().slots as [PlannerState["slots"][number]];
  const slots = Array.from({ length: 10_000 }, (_, i) => {
    const placement = i % 5_000 === 0 ? REGIONS.toReversed() : REGIONS;
    return { ...slot, slot: i, content: { ...content, object: { ...content.object, placement } } };
  });
  const state = { ...planned(), slots };
  const longest = Math.max(...[...encodePlannerState(state)].map(({ length }) => length));
  expect(longest).toBeLessThan(bytesOf(state).length / 2);
  const decoded = decodePlannerState(bytesOf(state))!;
  expect(decoded).toEqual(state);
  expect(new Set(decoded.slots.map(({ content: { object } }) => object.placement)).size).toBe(2);
});

test("unreadable bytes count as none", () => {
  expect(decodePlannerState(new TextEncoder().encode("<html>"))).toBeUndefined();
  expect(decodePlannerState(new Uint8Array(0))).toBeUndefined();
  expect(decodePlannerState(bytesOf(planned()).slice(0, 40))).toBeUndefined();
});
