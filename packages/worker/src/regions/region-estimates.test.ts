import { LATENCY_UNKNOWN } from "@agarose/core/sources";
import * as fc from "fast-check";
import { deliveryMs } from "@agarose/solver/planner";
import { describe, expect, test } from "vitest";
import { mergeRegion, type RegionSample, type RegionState } from "./region-estimates.ts";

const LOST = Number.POSITIVE_INFINITY;

/** The state after periods of three probes each. */
function after(
  periods: readonly (readonly number[])[],
  samples: readonly Omit<RegionSample, "region">[] = [],
  from?: RegionState,
): RegionState {
  let state = from;
  for (const ms of periods)
    state = mergeRegion(
      state,
      { region: "r", ms },
      samples.map((sample) => ({ region: "r", ...sample })),
    );
  return state!;
}
const times = (count: number, probe: readonly number[]): (readonly number[])[] =>
  Array.from({ length: count }, () => probe);
const usual = after(times(10, [20, 20, 20]));

describe("down", () => {
  test("within one period of lost probes, and back after two of good ones", () => {
    const down = after([[LOST, LOST, LOST]], [], usual);
    expect(down.down).toBe(true);
    expect(after(times(1, [20, 20, 20]), [], down).down).toBe(true);
    expect(after(times(2, [20, 20, 20]), [], down).down).toBe(false);
  });

  test("a region that flaps stays out", () => {
    const flapping = after(times(1, [LOST, LOST, LOST]), [], usual);
    expect(after(times(20, [20, 20, LOST]), [], flapping).down).toBe(true);
  });

  test("one lost probe, or one in each period, is not down", () => {
    expect(after(times(20, [20, LOST, 20]), [], usual).down).toBe(false);
  });
});

describe("slow", () => {
  const slow = after([[400, 410, 420]], [], usual);

  test("within one period, and the estimate is the new time at once", () => {
    expect(slow.slow).toBe(true);
    expect(slow.meanMs).toBeGreaterThan(390);
  });

  test("stays so, at its time, over one good period, and is restored after two", () => {
    const hoping = after(times(1, [20, 20, 20]), [], slow);
    expect(hoping).toMatchObject({ slow: true });
    expect(hoping.meanMs).toBeGreaterThan(390);
    const restored = after(times(2, [20, 20, 20]), [], slow);
    expect(restored.slow).toBe(false);
    expect(restored.meanMs).toBeCloseTo(20, 0);
  });

  test("reads of the time before do not hide it", () => {
    const reads = Array.from({ length: 50 }, () => ({ ms: 20, bytes: 0 }));
    expect(after([[400, 400, 400]], reads, usual).meanMs).toBeGreaterThan(390);
  });

  test("after an hour the new time is the usual one", () => {
    const settled = after(times(60, [400, 400, 400]), [], usual);
    expect(settled.slow).toBe(false);
    expect(settled.meanMs).toBeCloseTo(400, 0);
    expect(after(times(1, [400, 400, 400]), [], settled).slow).toBe(false);
  });

  test("a few milliseconds more are not slow, however near the region", () => {
    expect(after([[8, 9, 10]], [], after(times(5, [2, 2, 2]))).slow).toBe(false);
  });
});

describe("size", () => {
  test("sized probes alone show what a byte takes", () => {
    let state: RegionState | undefined;
    for (let period = 0; period < 10; period++) {
      state = mergeRegion(state, { region: "r", ms: [30, 30, 30], sized: { bytes: 250_000, ms: 55 } }, []);
    }
    expect(state!.meanMs).toBeCloseTo(30, 0);
    expect(deliveryMs(state!, 1_000_000)).toBeCloseTo(130, -1);
  });

  test("so do reads of many sizes, which leave the first byte's time where it is", () => {
    const sizes = [50_000, 200_000, 450_000, 1_000_000];
    const reads = sizes.map((bytes) => ({ bytes, ms: 40 + bytes / 5_000 }));
    const state = after(times(20, [40, 40, 40]), reads);
    expect(state.meanMs).toBeGreaterThan(36);
    expect(state.meanMs).toBeLessThan(44);
    expect(deliveryMs(state, 1_000_000)).toBeGreaterThan(0.9 * 240);
    expect(deliveryMs(state, 1_000_000)).toBeLessThan(1.1 * 240);
  });

  test("a lost sized probe counts neither way", () => {
    const state = mergeRegion(usual, { region: "r", ms: [20, 20, 20], sized: { bytes: 250_000, ms: LOST } }, []);
    expect(state).toMatchObject({ down: false, slow: false, msPerByte: 0 });
  });
});

test("one straggler among the probes moves the estimate by a fifth at most, and makes nothing slow", () => {
  const after1 = after([[20, 2_000, 20]], [], usual);
  expect(after1.slow).toBe(false);
  expect(after1.meanMs).toBeLessThan(1.2 * usual.meanMs);
});

test("a region that was never measured is believed to be of unknown latency", () => {
  expect(after([[LOST, LOST, LOST]])).toMatchObject({ ...LATENCY_UNKNOWN, down: true });
});

test("reads cannot move an estimate far, whatever they measure (property)", () => {
  let moved = 0;
  const lie = fc.record({
    ms: fc.double({ min: 0.001, max: 60_000, noNaN: true }),
    bytes: fc.integer({ min: 0, max: 64e6 }),
  });
  fc.assert(
    fc.property(fc.array(fc.array(lie, { maxLength: 4 }), { minLength: 1, maxLength: 60 }), (periods) => {
      let state = usual;
      for (const lies of periods) {
        const reads = lies.map((sample) => ({ region: "r", ...sample }));
        state = mergeRegion(state, { region: "r", ms: [20, 20, 20] }, reads);
        expect(state.down || state.slow).toBe(false);
        expect(state.meanMs).toBeGreaterThan(20 / 2.1);
        expect(state.meanMs).toBeLessThan(20 * 2.1);
        if (Math.abs(state.meanMs - 20) > 1) moved++;
      }
    }),
  );
  expect(moved).toBeGreaterThan(0);
});
