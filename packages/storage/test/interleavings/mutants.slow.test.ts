/** The simulator finds the mistakes that an audit found in the code before format 2. */
import { expect, test } from "vitest";
import { loadEngines, type Engines } from "./engines.ts";
import * as families from "./schedules/families.ts";
import { CLOCKS_UNCOMPARED, MUTANTS, withMutant, type Mutant } from "./mutants.ts";
import { scheduleOf } from "./schedules/schedule.ts";
import { search } from "./schedules/search.ts";
import { simulate } from "./simulation.ts";

/**
 * A seed gives the same schedules on every machine, so a slow one needs longer, and finds the same. Most mistakes show
 * within 100 schedules, and one copy too few in one of 700.
 */
const SCHEDULES_MAX = 1_000;
const FAMILIES: Record<string, typeof scheduleOf> = {
  "put says unchanged after a look at one region": families.killedAndRepeated,
  "gc deletes by the age of chunks, and lists before it looks": families.cleanedUnderReader,
  "gc takes ages by its own clock, and compares it with no other": families.cleanedByWrongClock,
  "a client takes an older version than it has seen": families.besideHostileRegion,
  "gc does not look at the claims of writers that run": families.cleanedUnderWriter,
  "gc looks at the claims after the manifests": families.cleanedUnderWriter,
  "a writer removes claims that it has not seen": families.killedBesideHostileRegion,
  "a writer copies what it saw before its first write, and not what came since": families.replacedUnderKeep,
  "a restore takes any generation that is free": families.restoredBesideWriters,
  "a copy counts in less than a majority": families.replacedUnderKeep,
  "rm removes the chunks of a version that is kept": families.replacedUnderKeep,
  "gc does not look at the history": families.replacedUnderKeep,
  "gc ends the time of a copy a day early": families.replacedUnderKeep,
  "a client takes a manifest that no trusted key has signed": families.besideHostileRegion,
  "expire removes what another writer has put since it was listed": families.expiredBesideWriters,
  "expire goes by the oldest time that a region lists": families.expiredBesideWriters,
  "a chunk under the former name of a region counts as lost": families.renamedBesideWriters,
  "a strong read takes the first answer": families.besideRegionsThatComeAndGo,
  "what a writer cannot use counts as nothing": families.rotatedBesideWriters,
  "a writer does not look which keys are in force": families.rotatedBesideWriters,
  "a batch does not look for those of others": families.manyByBatches,
  "a batch counts in less than a majority": families.manyByBatches,
  "a batch looks for those of others before it is stored": families.manyByBatches,
  "a batch does not look at manifests after its claim": families.manyByBatches,
  "a batch takes the next generation, as a claim of its own does": families.manyByBatches,
  "a page's upload goes by a claim that another writer has won": families.begunAtOneMoment,
  "a token may begin its upload twice at one moment": families.uploadedBesideWriters,
  "a page that commits again hears that all regions have it": families.uploadedBesideWriters,
  "a manifest is renamed over what another writer has put meanwhile": families.renamedBesideWriters,
};

test.each(MUTANTS)("a broken promise is found when $name", async (mutant) => {
  const family = FAMILIES[mutant.name] ?? scheduleOf;
  const result = await withMutant(mutant, (engines) =>
    search({ engines, firstSeed: 0, schedules: SCHEDULES_MAX, scheduleOf: family }),
  );
  expect(result.failure, result.text).toBeDefined();
  const { violation, trace } = result.failure!;
  console.log(`${mutant.name}: ${violation} (schedule ${result.schedules}, ${result.ms} ms)`);
  expect(trace.length).toBeGreaterThan(0);
});

test.each(Object.entries(FAMILIES))("the present engines keep every promise where: %s", async (_, family) => {
  const engines = await loadEngines();
  for (let seed = 0; seed < 20; seed++) {
    expect(await simulate(family(seed), engines)).toMatchObject({ violation: undefined });
  }
});

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

test.each<[string, Mutant["edits"][number]]>([
  ["the command fails by it", ["commit/commit.ts", "context.fence?.prepare();", "gone.then();"]],
  [
    "the command takes it for an outage",
    ["commit/claim.ts", "const bytes = Buffer.from(body);", "const bytes = gone;"],
  ],
])("a mutant whose text names what is not there is broken, and proves nothing: %s", async (_, edit) => {
  const mutant = { name: "text that no longer fits", edits: [edit] };
  const found = withMutant(mutant, (engines) => search({ engines, firstSeed: 0, schedules: 2, scheduleOf }));
  await expect(found).rejects.toThrow('the mutant "text that no longer fits" is broken: ReferenceError');
});
