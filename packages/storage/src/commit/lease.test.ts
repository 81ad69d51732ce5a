import { expect, test } from "vitest";
import { SimulatedClock } from "@agarose/core/testing";
import type { Store } from "../buckets/store.ts";
import { startWatch } from "./lease.ts";
import { writeContextOf } from "./write-context.ts";

const HOUR_MS = 3_600_000;

test.each([
  ["its timers", 2 * HOUR_MS, 0, 0, true],
  ["its clock of the day", 0, 2 * HOUR_MS, 0, true],
  ["the clocks of the regions, where both of its own stopped", 0, 0, 2 * HOUR_MS, true],
  ["none of them", 1_000, 1_000, 1_000, false],
])("a writer may look dead after two hours by %s", async (_, timerMs, wallMs, regionMs, expected) => {
  const clock = new SimulatedClock();
  const own = { nowMs: 0, clockAheadMs: 0 };
  const stores = [own as unknown as Store];
  const { signal } = new AbortController();
  const mayLookDead = startWatch(
    writeContextOf({ config: {} as never, stores, signal, clock, nowMs: () => own.nowMs }),
  );
  await clock.advance(timerMs);
  Object.assign(own, { nowMs: wallMs, clockAheadMs: regionMs });
  expect(mayLookDead()).toBe(expected);
});
