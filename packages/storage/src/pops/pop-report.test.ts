import { expect, test } from "vitest";
import { judge, type PopSummary } from "./pop-report.ts";

test.each([
  ["79% of the day's egress for fills is nothing to say", { bytes: 7_900, bytesPerDayMax: 10_000 }, []],
  [
    "80% is",
    { bytes: 8_000, bytesPerDayMax: 10_000 },
    ["7.8 KiB of the 9.8 KiB that FILL_EGRESS_BYTES_PER_DAY allows"],
  ],
  ["a spent one names what waits", { bytes: 9_999, bytesPerDayMax: 10_000, refusedStripes: 7 }, ["UTC, and 7 stripes"]],
  ["a PoP that may fetch nothing has spent nothing", { bytes: 0, bytesPerDayMax: 0, refusedStripes: 7 }, []],
] as const)("%s", (_, egress, said) => {
  const summary = { periodAgeSeconds: 1, regionsDown: [], regionsSlow: [] as string[] };
  const fillEgress = { refusedStripes: 0, ...egress };
  const { problems, warnings } = judge({ ...summary, fillEgress } as unknown as PopSummary, []);
  expect({ problems, warnings }).toEqual({ problems: [], warnings: said.map((text) => expect.stringContaining(text)) });
  expect(judge({ ...summary, fillEgress: null } as unknown as PopSummary, []).warnings, "an older PoP").toEqual([]);
});
