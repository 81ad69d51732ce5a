import type { PlannedContents } from "@agarose/solver/planner";
import { expect, test } from "vitest";
import { affordableChange, diffCache, fetchedBytes } from "./cache-change.ts";
import type { LedgerEntry } from "./ledger.ts";
import { addEgress, addSpending, type FillEgress } from "./spending.ts";
import { EgressBudget, WriteBudget, type SpendingSettings } from "./write-budget.ts";

const NOW_MS = Date.UTC(2026, 10, 21);
const prices: SpendingSettings = {
  writeUsdPerMillion: 5,
  readUsdPerMillion: 0.5,
  usdPerPeriod: Infinity,
  usdPerMonth: Infinity,
};
const spent = (usd: number, month = "2026-11") => ({ month, writes: 0, reads: 0, usd });

test("a write budget buys so many writes, each with a read before it, as the period and the rest of the month allow", () => {
  const writesLeft = (settings: Partial<SpendingSettings>, before?: ReturnType<typeof spent>): number =>
    new WriteBudget({ ...prices, ...settings }, before, NOW_MS).writesLeft;
  expect(writesLeft({})).toBe(Infinity);
  expect(writesLeft({ usdPerPeriod: 5.5e-3 })).toBe(1_000);
  expect(writesLeft({ usdPerPeriod: 5.5e-3, usdPerMonth: 1 }, spent(0.9989))).toBe(200);
  expect(writesLeft({ usdPerMonth: 1 }, spent(1.2))).toBe(0);
  expect(writesLeft({ usdPerMonth: 5.5e-4 }, spent(1, "2026-10")), "a new month").toBe(100);
  expect(writesLeft({ writeUsdPerMillion: 0, readUsdPerMillion: 0, usdPerPeriod: 0 })).toBe(Infinity);
});

test("leaves out what is spent and what others hold", async () => {
  const writeBudget = new WriteBudget({ ...prices, usdPerPeriod: 5.5e-5 }, undefined, NOW_MS);
  expect(writeBudget.writesLeft).toBe(10);
  writeBudget.spend({ writes: 2, reads: 2 });
  await writeBudget.hold(3, async () => expect(writeBudget.writesLeft).toBe(5));
  expect(writeBudget.writesLeft).toBe(8);
  expect(writeBudget.spent).toEqual({ month: "2026-11", writes: 2, reads: 2, usd: 1.1e-5 });
});

test("spending adds up within a month, restarts with the next, and is never negative", () => {
  const add = { month: "2026-11", writes: 2, reads: 3, usd: 5 };
  const back = { month: "2026-11", writes: -1, reads: -1, usd: -2 };
  expect(addSpending(addSpending(undefined, add), back)).toEqual({ month: "2026-11", writes: 1, reads: 2, usd: 3 });
  expect(addSpending({ ...add, month: "2026-10" }, add)).toEqual(add);
  expect(addSpending({ ...add, month: "2026-10" }, back)).toEqual({ month: "2026-11", writes: 0, reads: 0, usd: 0 });
  expect(addSpending({ ...add, month: "2026-12" }, back), "a clock that is behind").toMatchObject({ month: "2026-12" });
});

const entry = (version: string, changes: Partial<LedgerEntry> = {}): LedgerEntry => {
  const chunks = [1, 2];
  return { version, key: version, stripes: 2, chunkBytes: 100, chunks, target: chunks, done: 2, ...changes };
};
const wanted = (version: string, worth: number, changes: Partial<PlannedContents> = {}): PlannedContents => ({
  object: { key: version, version, k: 4, m: 2, placement: [], stripes: 2, chunkBytes: 100, shardBytes: 50 },
  chunks: [1, 2],
  worth,
  ...changes,
});
const afford = (
  ledger: LedgerEntry[],
  planned: PlannedContents[],
  writes: number,
  { capacityBytes = 400, egressBytes = Infinity } = {},
) => {
  const change = affordableChange(diffCache(ledger, planned), ledger, { writes, egressBytes, capacityBytes });
  return {
    fill: change.fill.map(({ entry: { version } }) => version),
    evict: change.evict.map(({ version }) => version),
    announced: change.announce.map(({ version }) => version).toSorted(),
    waiting: change.waiting,
    ...(change.refused > 0 ? { refused: change.refused } : {}),
  };
};

test("with money for all, everything changes, most worth per write first", () => {
  expect(afford([entry("old")], [wanted("a", 1), wanted("b", 2)], Infinity)).toEqual({
    fill: ["b", "a"],
    evict: ["old"],
    announced: ["a", "b", "old"],
    waiting: 0,
  });
});

test("with money for little, what is worth most per write comes with the room it needs, and the rest stays as it is", () => {
  const ledger = [entry("x"), entry("y")];
  const planned = [wanted("a", 3), wanted("b", 5)];
  expect(afford(ledger, planned, 4)).toEqual({ fill: ["b"], evict: ["x"], announced: ["b", "x"], waiting: 4 });
  expect(afford(ledger, planned, 0)).toEqual({ fill: [], evict: [], announced: [], waiting: 8 });
});

test("evicts nothing while there is room, and evicts unwanted chunks while there is money", () => {
  const ledger = [entry("x")];
  expect(afford(ledger, [wanted("a", 3)], 2)).toMatchObject({ fill: ["a"], evict: [], waiting: 2 });
  expect(afford(ledger, [wanted("a", 3)], 3)).toMatchObject({ fill: ["a"], evict: ["x"], waiting: 0 });
});

test("an object that is to shrink makes room like one that is evicted", () => {
  const ledger = [entry("x", { chunks: [0, 1, 2, 3], target: [0, 1, 2, 3] })];
  const planned = [wanted("x", 0, { chunks: [1, 2] }), wanted("a", 9)];
  expect(afford(ledger, planned, 4)).toMatchObject({ fill: ["x", "a"], evict: [], waiting: 0 });
  expect(afford(ledger, planned, 1)).toMatchObject({ fill: ["x"], waiting: 2 });
});

test("an object larger than what there is money for is begun, and not before its room is paid", () => {
  const large = wanted("a", 3, { object: { ...wanted("a", 3).object, stripes: 100 } });
  expect(afford([], [large], 10)).toMatchObject({ fill: ["a"], waiting: 0 });
  expect(afford([entry("x"), entry("y")], [large], 2)).toMatchObject({ fill: [], evict: ["x"] });
});

test("what the regions may not deliver today is refused, and what it would displace stays", () => {
  const ledger = [entry("x"), entry("y")];
  const planned = [wanted("a", 3), wanted("b", 5)];
  const both = afford(ledger, planned, Infinity, { egressBytes: 400 });
  expect(both).toMatchObject({ fill: ["b", "a"], evict: ["x", "y"], waiting: 0 });
  expect(both).not.toHaveProperty("refused");
  const one = afford(ledger, planned, Infinity, { egressBytes: 200 });
  expect(one).toMatchObject({ fill: ["b"], evict: ["x"], refused: 2, waiting: 2 });
  expect(afford(ledger, planned, Infinity, { egressBytes: 199 }), "half a fill would serve nothing").toMatchObject({
    fill: [],
    evict: [],
    refused: 4,
  });
  expect(afford(ledger, planned, Infinity, { egressBytes: 0 })).toMatchObject({ fill: [], evict: [], refused: 4 });
  expect(afford(ledger, [], Infinity, { egressBytes: 0 }), "nothing is to take their place").toMatchObject({
    evict: ["x", "y"],
  });
});

test("a fill fetches the chunks that it lacks, and k where one of those is computed", () => {
  const bytesOf = (chunks: number[], before: LedgerEntry[] = []): number =>
    fetchedBytes(diffCache(before, [wanted("a", 1, { chunks })]).fill[0]!);
  expect(bytesOf([1, 2])).toBe(200);
  expect(bytesOf([1, 6])).toBe(400);
  expect(bytesOf([1, 2, 3], [entry("a")])).toBe(100);
  expect(bytesOf([1], [entry("a")])).toBe(0);
  expect(bytesOf([1, 2], [entry("a", { chunks: [], done: 1 })]), "of the stripes that are left").toBe(100);
});

test("an egress budget is of one day, UTC", async () => {
  const left = (before?: FillEgress): number => new EgressBudget(1_000, before, NOW_MS).left;
  expect(left()).toBe(1_000);
  expect(left({ day: "2026-11-21", bytes: 700 })).toBe(300);
  expect(left({ day: "2026-11-21", bytes: 1_700 })).toBe(0);
  expect(left({ day: "2026-11-20", bytes: 700 })).toBe(1_000);
  const budget = new EgressBudget(1_000, undefined, NOW_MS);
  budget.spend(100);
  await budget.hold(300, async () => expect(budget.left).toBe(600));
  expect(budget.left).toBe(900);
  const added = addEgress(addEgress(undefined, budget.of(500)), budget.of(-400));
  expect(added).toEqual({ day: "2026-11-21", bytes: 100 });
  expect(addEgress(added, { day: "2026-11-22", bytes: 5 })).toEqual({ day: "2026-11-22", bytes: 5 });
  expect(addEgress(added, { day: "2026-11-20", bytes: 5 })).toEqual(added);
});
