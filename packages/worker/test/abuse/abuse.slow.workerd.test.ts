/** A hundred and fiftieth part of an hour of abuse. `soak.ts` plays the whole. */
import { expect, test } from "vitest";
import { ISOLATE_BYTES_MAX, playAbuse } from "./abuse.ts";

/** The outcome of each kind that shows that it fired. */
const FIRED: Readonly<Record<string, string>> = {
  "clients that leave in the middle": "left",
  HEAD: "200",
  "clients that read nothing": "stalled",
  "keys that do not exist": "404",
  "floods of /v1/plans": "200",
  "guesses of the token": "401",
};

test("a PoP keeps its memory and serves a good reader under every kind of abuse at once, and after it", async () => {
  const report = await playAbuse(1 / 150);
  for (const { kind, events, outcomes } of report.kinds) {
    expect(events, kind.name).toBeGreaterThan(2);
    expect([...outcomes.keys()], kind.name).toContain(FIRED[kind.name]);
    const failures = [...outcomes.keys()].filter((outcome) => outcome === "500" || outcome.includes("Error"));
    expect(failures, kind.name).toEqual([]);
  }
  expect(report.kinds).toHaveLength(Object.keys(FIRED).length);
  expect(report.problems).toEqual([]);
  expect(report.goodReads).toBeGreaterThan(50);
  expect(report.periods).toBeGreaterThan(0);
  expect(report.isolateBytes).toBeLessThan(ISOLATE_BYTES_MAX);
  expect(report.isolate.readsWithMemory).toBe(0);
});
