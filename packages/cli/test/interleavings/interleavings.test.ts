/** What the commands do beside each other, over stores and processes that fail, keeps every promise. */
import { expect, test } from "vitest";
import { loadEngines } from "./engines.ts";
import { scheduleOf } from "./schedule.ts";
import { search } from "./search.ts";
import { simulate } from "./simulation.ts";

const MS = 10_000;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

test(`random schedules keep every promise for ten seconds, from seed ${SEED}`, async () => {
  const engines = await loadEngines();
  const result = await search({
    engines,
    firstSeed: SEED,
    schedules: Number.POSITIVE_INFINITY,
    limitMs: MS,
    scheduleOf,
  });
  console.log(result.text);
  expect(result.failure, result.text).toBeUndefined();
  // Each kind of trouble came, and most of the work was done all the same.
  const { events, schedules } = result;
  expect(schedules).toBeGreaterThan(20);
  for (const count of Object.values(events)) expect(count).toBeGreaterThan(0);
});

test("a schedule runs the same way twice, event by event", async () => {
  const engines = await loadEngines();
  for (let seed = SEED; seed < SEED + 10; seed++) {
    const schedule = scheduleOf(seed);
    const first = await simulate(schedule, engines, true);
    expect(await simulate(schedule, engines, true)).toEqual(first);
    expect(first.trace.length).toBeGreaterThan(10);
  }
});
