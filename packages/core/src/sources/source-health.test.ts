import { expect, test } from "vitest";
import { AVOID_MS, AVOID_MS_MAX, SourceHealth } from "./source-health.ts";

let nowMs = 0;
const clock = { now: () => nowMs };

test("a source that fails is avoided for a time that doubles up to a minute, until it delivers", () => {
  const health = new SourceHealth(clock);
  for (const ms of [AVOID_MS, 10_000, 20_000, 40_000, AVOID_MS_MAX, AVOID_MS_MAX]) {
    health.failed("r");
    nowMs += ms - 1;
    expect(health.isAvoided("r")).toBe(true);
    nowMs += 1;
    expect(health.isAvoided("r")).toBe(false);
  }
  health.succeeded("r");
  health.failed("r");
  nowMs += AVOID_MS;
  expect(health.isAvoided("r")).toBe(false);
  expect(health.isAvoided("other")).toBe(false);
});

test("failures while it is avoided do not lengthen the time, and being behind does", () => {
  const health = new SourceHealth(clock);
  health.failed("r");
  nowMs += AVOID_MS - 1;
  health.failed("r");
  nowMs += 1;
  expect(health.isAvoided("r")).toBe(false);
  health.avoid("r", AVOID_MS_MAX);
  nowMs += AVOID_MS_MAX - 1;
  health.avoid("r", AVOID_MS_MAX);
  nowMs += AVOID_MS_MAX - 1;
  expect(health.isAvoided("r")).toBe(true);
  nowMs += 1;
  expect(health.isAvoided("r")).toBe(false);
});
