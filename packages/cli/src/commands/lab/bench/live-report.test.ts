import { expect, test } from "vitest";
import { describeLive, type LiveSample } from "./live-report.ts";

const sample = (more: Partial<LiveSample>): LiveSample => ({
  phase: "next",
  contestant: "agarose",
  bytes: 1_000_000,
  ms: 100,
  kind: "edge",
  ...more,
});

test("a report has a row for each phase and size, and its failures count in no median", () => {
  const lines = describeLive({
    machine: "Measured somewhere.",
    copyRegion: "frankfurt",
    places: [
      { kind: "PoP", name: "fra", ms: 12.4, note: "location weur, entered at FRA" },
      { kind: "region", name: "tokyo", ms: undefined, note: "it answers 403" },
    ],
    samples: [
      sample({ ms: 100 }),
      sample({ ms: 200, kind: "mixed" }),
      sample({ ms: 300 }),
      sample({ contestant: "copy", ms: 400 }),
      sample({ contestant: "copy", ms: 0, error: "it did not answer" }),
      sample({ phase: "first", ms: 900, kind: "origin" }),
    ],
  });
  const cells = lines
    .join("\n")
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split("|").map((cell) => cell.trim()));
  expect(cells.find(([, what]) => what === "next, 1 MB")!.slice(2, -1)).toEqual([
    "200 (150 - 250)",
    "-",
    "400 (400 - 400)",
    "0.50",
    "2 edge, 1 mixed",
    "1",
  ]);
  expect(cells.find(([, what]) => what === "first, 1 MB")!.slice(2, -1)).toEqual([
    "900 (900 - 900)",
    "-",
    "-",
    "-",
    "1 origin",
    "0",
  ]);
  expect(cells).toContainEqual(["", "PoP", "fra", "12", "location weur, entered at FRA", ""]);
  expect(cells).toContainEqual(["", "region", "tokyo", "-", "it answers 403", ""]);
});
