import { expect, test } from "vitest";
import type { RegionState } from "../state/world.ts";
import { redundancy } from "./savings.ts";

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
  expect(lineOf({ down: true }, { corrupt: 0.5 })).toContain("fewer than the code needs");
});
