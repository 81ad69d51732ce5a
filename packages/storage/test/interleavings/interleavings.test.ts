/**
 * Commands that run at the same time, over stores and processes that fail, keep every promise. Many more schedules
 * run in `families.slow.test.ts`.
 */
import { expect, test } from "vitest";
import { loadEngines } from "./engines.ts";
import { afterCrashedConditionalWriter } from "./schedules/families.ts";
import { FOUND } from "./schedules/found.ts";
import { scheduleOf } from "./schedules/schedule.ts";
import { simulate } from "./simulation.ts";

const CRASHES = 60;
const SEED = Number(process.env["AGAROSE_SEED"] ?? Date.now() % 1_000_000_000);

test("a conditional writer that dies at any await holds up the next one for less than a minute", async () => {
  const engines = await loadEngines();
  let kills = 0;
  for (let at = 0; at < CRASHES; at++) {
    const { violation, trace, events } = await simulate(afterCrashedConditionalWriter(at), engines, true);
    expect(violation, `killed at ${at}`).toBeUndefined();
    const own = trace.filter((line) => line.includes("replace 2"));
    // The dead writer's unfinished write may have been completed before the condition was checked.
    const isThrough = own.some((line) => /acknowledged as generation|the condition does not hold/.test(line));
    expect(isThrough, `killed at ${at}: ${trace.join("\n")}`).toBe(true);
    kills += events.kills;
  }
  expect(kills).toBeGreaterThan(CRASHES / 2);
});

test.each(Object.entries(FOUND))("a schedule that once broke a promise keeps it: %s", async (_, schedule) => {
  const { violation, events } = await simulate(schedule, await loadEngines());
  expect(violation).toBeUndefined();
  expect(events.faults > 0).toBe(schedule.faults.length > 0);
});

test(`random schedules keep every promise, and run the same way twice, from seed ${SEED}`, async () => {
  const engines = await loadEngines();
  for (let seed = SEED; seed < SEED + 10; seed++) {
    const schedule = scheduleOf(seed);
    const first = await simulate(schedule, engines, true);
    expect(first.violation, `seed ${seed}`).toBeUndefined();
    expect(await simulate(schedule, engines, true)).toEqual(first);
    expect(first.trace.length).toBeGreaterThan(10);
  }
});
