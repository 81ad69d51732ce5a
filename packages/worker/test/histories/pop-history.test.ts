/** A few dozen histories of a PoP; `soak.ts` plays any number. */
import { expect, test } from "vitest";
import { playHistory, type HistoryReport, type Mutant } from "./pop-history.ts";

const FIRST = Number(process.env["AGAROSE_SEED"] ?? 1 + Math.floor(Math.random() * 1e6));
const HISTORIES = process.env["AGAROSE_SEED"] === undefined ? 30 : 1;

test(`no PoP answers what was replaced longer ago than its bound (seeds from ${FIRST})`, async () => {
  const reports: HistoryReport[] = [];
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed++) {
    const report = await playHistory(seed);
    expect(report.violation, `AGAROSE_SEED=${seed} repeats it`).toBeUndefined();
    reports.push(report);
  }
  const sum = (of: (report: HistoryReport) => number): number => reports.reduce((all, one) => all + of(one), 0);
  expect(sum((one) => one.reads)).toBeGreaterThan(50 * HISTORIES);
  if (HISTORIES < 30) return;
  expect(
    sum((one) => one.bound),
    "reads of which the bound says something",
  ).toBeGreaterThan(300);
  expect(
    sum((one) => one.stale),
    "reads of what was replaced, in time",
  ).toBeGreaterThan(30);
  expect(
    sum((one) => one.unconfirmed),
    "look-ups without a majority",
  ).toBeGreaterThan(3);
  expect(
    sum((one) => one.unchanged),
    "answers that a manifest is unchanged",
  ).toBeGreaterThan(300);
});

test.each([56_949, 242_717, 277_560, 502_174])(
  "history %i, in which regions that hang and laggards meet, keeps it",
  async (seed) => {
    expect((await playHistory(seed)).violation).toBeUndefined();
  },
);

test("in history 901008, one region answers for a key that a new isolate finds in no cache, until a majority has", async () => {
  const { violation, unknown, bound } = await playHistory(901_008);
  expect(violation).toBeUndefined();
  expect(unknown).toBeGreaterThan(0);
  expect(unknown).toBeLessThan(bound / 10);
});

test.each<Mutant>([
  "renews by the first region",
  "keeps manifests twice as long",
  "takes any answer to a condition for a 304",
])("finds a PoP that %s", async (mutant) => {
  for (let seed = 1; seed <= 60; seed++) if ((await playHistory(seed, mutant)).violation !== undefined) return;
  expect.unreachable("60 histories have not shown it");
});
