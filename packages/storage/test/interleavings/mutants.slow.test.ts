/** The simulator finds the mistakes that an audit found in the code before format 2. */
import { expect, test } from "vitest";
import { loadEngines, type Engines } from "./engines.ts";
import * as families from "./schedules/families.ts";
import { CLOCKS_UNCOMPARED, MUTANTS, withMutant } from "./mutants.ts";
import type { Edit } from "./mutation.ts";
import { scheduleOf } from "./schedules/schedule.ts";
import { search } from "./schedules/search.ts";
import { simulate } from "./simulation.ts";

/**
 * A seed gives the same schedules on every machine, so a slow one needs longer, and finds the same. Most mistakes show
 * within 100 schedules, and one copy too few in one of 700.
 */
const SCHEDULES_MAX = 1_000;

test.each(MUTANTS)("a broken promise is found when $name", async (mutant) => {
  const { family = scheduleOf } = mutant;
  const result = await withMutant(mutant, (engines) =>
    search({ engines, firstSeed: 0, schedules: SCHEDULES_MAX, scheduleOf: family }),
  );
  expect(result.failure, result.text).toBeDefined();
  const { violation, trace } = result.failure!;
  console.log(`${mutant.name}: ${violation} (schedule ${result.schedules}, ${result.ms} ms)`);
  expect(trace.length).toBeGreaterThan(0);
});

test.each(Object.entries(families.FAMILIES))(
  "the present engines keep every promise in schedules: %s",
  async (_, family) => {
    const engines = await loadEngines();
    for (let seed = 0; seed < 20; seed++) {
      expect(await simulate(family(seed), engines)).toMatchObject({ violation: undefined });
    }
  },
);

test("gc with a wrong clock refuses, and by the clocks of the regions it would delete nothing either", async () => {
  const engines = await loadEngines();
  for (let seed = 0; seed < 20; seed++) {
    const { trace } = await simulate(families.cleanedByWrongClock(seed), engines, true);
    expect(trace.filter((line) => line.includes("CLOCKS_DISAGREE"))).toHaveLength(1);
  }
  const mutant = { name: "clocks are not compared", edits: [CLOCKS_UNCOMPARED] };
  const search20 = (uncompared: Engines) =>
    search({ engines: uncompared, firstSeed: 0, schedules: 20, scheduleOf: families.cleanedByWrongClock });
  const result = await withMutant(mutant, search20);
  expect(result.failure, result.text).toBeUndefined();
});

test.each<[string, Edit, string]>([
  ["its function is gone", ["commit/claim.ts", "claimed", "call prepare", "0"], "it is there 0 times"],
  ["its place is gone", ["commit/commit.ts", "timeAfter", "call prepare", "0"], "`call prepare` fits 0 places"],
  ["several places fit", ["commit/commit.ts", "sealOwn", "test copies", "0"], "`test copies` fits 5 places"],
])("a mutant names its file and function when %s", async (_, edit, problem) => {
  const found = withMutant({ name: "out of date", edits: [edit] }, async () => {});
  await expect(found).rejects.toThrow(`${edit[0]}, function ${edit[1]}: ${problem}`);
});

test.each<[string, Edit]>([
  ["the command fails by it", ["commit/commit.ts", "commitRecord", "call prepare", "gone.then()"]],
  ["the command takes it for an outage", ["commit/claim.ts", "claimIn", "value bytes 1", "gone"]],
])("a mutant whose text names what is not there is broken, and proves nothing: %s", async (_, edit) => {
  const mutant = { name: "text that no longer fits", edits: [edit] };
  const found = withMutant(mutant, (engines) => search({ engines, firstSeed: 0, schedules: 2, scheduleOf }));
  await expect(found).rejects.toThrow('the mutant "text that no longer fits" is broken: ReferenceError');
});
