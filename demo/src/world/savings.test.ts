import { expect, test } from "vitest";
import type { RegionState } from "../state/world.ts";
import { redundancy } from "./redundancy.ts";
import { MeasuredPeriods } from "./savings.ts";

const NINE_OF_TWELVE = { k: 9, m: 3 };

function regionsWith(...faults: readonly Partial<RegionState>[]): RegionState[] {
  const sound = { down: false, corrupt: 0, latencyFactor: 1 };
  return Array.from({ length: 6 }, (_, index) => ({ name: `r${index}`, ...sound, ...faults[index] }) as RegionState);
}

test("a region that corrupts its chunks counts as one that is lost", () => {
  const lineOf = (...faults: readonly Partial<RegionState>[]): string =>
    redundancy({ code: NINE_OF_TWELVE, regions: regionsWith(...faults) });
  expect(lineOf()).toContain("1 more region may fail");
  expect(lineOf({ corrupt: 1 })).toBe(lineOf({ down: true }));
  expect(lineOf({ down: true, corrupt: 1 })).toContain("no further region may fail");
  expect(lineOf({ down: true }, { corrupt: 0.5 })).toContain("fewer than every file needs");
});

test.each([{ down: true }, { corrupt: 0.5 }, { latencyFactor: 3 }])(
  "what a PoP measured beside the fault %j is not shown as saved, until a period has ended without it",
  (fault) => {
    const measured = new MeasuredPeriods();
    const periods = (count: number): number[] => Array.from({ length: count }, (_, index) => index);
    measured.add({ regions: regionsWith(), cronRuns: periods(1) });
    expect(measured.isSound).toBe(true);
    measured.add({ regions: regionsWith(fault), cronRuns: periods(2) });
    expect(measured.isSound).toBe(false);
    // The fault was there for a part of the period that ends now.
    measured.add({ regions: regionsWith(), cronRuns: periods(2) });
    expect(measured.isSound).toBe(false);
    expect(measured.add({ regions: regionsWith(), cronRuns: periods(3) })).toBe(true);
    expect(measured.isSound).toBe(true);
  },
);
