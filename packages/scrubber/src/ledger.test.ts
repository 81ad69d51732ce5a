/** The ledger by itself: children that come twice, die, or come back late, and budgets. */
import { NO_TOTALS, type Totals } from "@agarose/storage/maintenance/scrub/totals";
import * as fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { Child, Limits, Position } from "./ledger.ts";

vi.mock("cloudflare:workers", () => ({
  DurableObject: class {
    readonly ctx: unknown;
    constructor(ctx: unknown) {
      this.ctx = ctx;
    }
  },
}));
const { Ledger } = await import("./ledger.ts");

const LIMITS: Limits = { concurrency: 2, requests: Infinity };
const BUDGET = { spent: 1, max: Infinity };

function ledgerOf(values = new Map<string, unknown>()) {
  const storage = {
    get: async (name: string) => structuredClone(values.get(name)),
    put: async (name: string, value: unknown) => void values.set(name, structuredClone(value)),
    list: async ({ prefix }: { prefix: string }) =>
      new Map([...values].filter(([name]) => name.startsWith(prefix)).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    delete: async (names: string[]) => names.filter((name) => values.delete(name)).length,
  };
  return { values, ledger: new Ledger({ storage } as never, {}) };
}

async function begun(cuts: readonly string[], urgent: readonly string[] = [], behind: readonly string[] = []) {
  const world = ledgerOf();
  await world.ledger.claim("p1", undefined);
  await world.ledger.begin("p1", "all", 1_000);
  await world.ledger.cut("p1", cuts, urgent, behind);
  return world;
}

const totalsOf = (more: Partial<Totals>): Totals => ({ ...NO_TOTALS, ...more });
const at = (after: string, objects: number, isEnd = false): Position => ({
  after,
  totals: totalsOf({ objects }),
  isEnd,
});

test("ranges are walked over as many at a time as allowed, the damaged ones first, and their sums are the walk's", async () => {
  const { ledger } = await begun(["b", "d", "f"], ["e1", "e2"], ["g"]);
  const first = await ledger.round("p1", [], LIMITS, 2_000);
  expect(first).toEqual({
    start: [
      { id: "rs-2-1", index: 2 },
      { id: "rs-3-1", index: 3 },
    ],
    isOver: false,
  });
  expect(await ledger.take(first.start[1]!)).toEqual({
    startMs: 1_000,
    ranges: 4,
    behind: ["g"],
    position: { after: "f", totals: NO_TOTALS, isEnd: false },
  });
  expect(await ledger.round("p1", [], LIMITS, 2_000)).toEqual({ start: [], isOver: false });
  for (const [child, key] of [
    [first.start[0]!, "f"],
    [first.start[1]!, "z"],
  ] as const) {
    const { position } = (await ledger.take(child))!;
    expect(await ledger.pass(child, position, at(key, 5, true), BUDGET)).toBe(false);
  }
  const second = await ledger.round("p1", [], LIMITS, 2_000);
  expect(second.start.map(({ index }) => index)).toEqual([0, 1]);
  expect(await ledger.progress()).toMatchObject({ ranges: 4, rangesDone: 2, rangesRunning: 2, requests: 2 });
  for (const [child, key] of [
    [second.start[0]!, "b"],
    [second.start[1]!, "d"],
  ] as const) {
    await ledger.pass(child, (await ledger.take(child))!.position, at(key, 7, true), BUDGET);
  }
  const totals = totalsOf({ objects: 24 });
  expect(await ledger.round("p1", [], LIMITS, 9_000)).toEqual({
    start: [],
    isOver: true,
    ended: { totals, startMs: 1_000, endMs: 9_000 },
  });
  expect([await ledger.last(), await ledger.progress()]).toEqual([{ totals, startMs: 1_000, endMs: 9_000 }, undefined]);
});

test("a step that runs twice counts once, and a child that was replaced counts for nothing", async () => {
  const { ledger } = await begun([]);
  const [child] = (await ledger.round("p1", [], LIMITS, 0)).start as [Child];
  const { position } = (await ledger.take(child))!;
  expect(await ledger.pass(child, position, at("a", 10), BUDGET)).toBe(true);
  expect(await ledger.pass(child, position, at("b", 20), BUDGET)).toBe(false);
  expect(await ledger.progress()).toMatchObject({ totals: { objects: 10 }, requests: 1 });
  const [next] = (await ledger.round("p1", [{ ...child, error: "evicted" }], LIMITS, 0)).start as [Child];
  expect(next).toEqual({ id: "rs-0-2", index: 0 });
  expect(await ledger.progress()).toMatchObject({ failed: [{ failures: 1, error: "evicted" }] });
  expect(await ledger.take(child)).toBeUndefined();
  expect(await ledger.pass(child, at("a", 10), at("b", 20), BUDGET)).toBe(false);
  await ledger.release({ ...child, error: "late" });
  expect((await ledger.take(next))?.position).toEqual(at("a", 10));
  expect(await ledger.pass(next, at("a", 10), at("b", 20), BUDGET)).toBe(true);
  expect(await ledger.progress()).toMatchObject({ totals: { objects: 20 }, failed: [] });
});

test("a range that fails is tried three times, after the others, and again by the next parent", async () => {
  const { ledger } = await begun(["m"]);
  const one = { ...LIMITS, concurrency: 1 };
  const failed: number[] = [];
  for (let round = 0; round < 4; round++) {
    const [child] = (await ledger.round("p1", [], one, 0)).start as [Child];
    failed.push(child.index);
    await ledger.release({ ...child, error: "no quorum" });
  }
  expect(failed).toEqual([0, 1, 0, 1]);
  for (let round = 0; round < 2; round++) {
    const [child] = (await ledger.round("p1", [], one, 0)).start as [Child];
    await ledger.release({ ...child, error: "no quorum" });
  }
  expect(await ledger.round("p1", [], one, 0)).toEqual({ start: [], isOver: true });
  expect(await ledger.progress()).toMatchObject({
    failed: [
      { until: "m", failures: 3, error: "no quorum" },
      { after: "m", failures: 3, error: "no quorum" },
    ],
  });
  expect(await ledger.claim("p2", "p1")).toBe("p2");
  expect(await ledger.begin("p2", "all", 5_000)).toMatchObject({ startMs: 1_000, ranges: 2 });
  expect((await ledger.round("p2", [], one, 0)).start).toEqual([{ id: "rs-0-4", index: 0 }]);
});

test("of two parents one leads: the other one starts nothing", async () => {
  const { ledger } = await begun(["m"]);
  expect(await ledger.claim("p2", undefined)).toBe("p1");
  expect(await ledger.claim("p3", "p1")).toBe("p3");
  expect(await ledger.claim("p2", "p1")).toBe("p3");
  expect(await ledger.begin("p2", "all", 0)).toBeUndefined();
  expect(await ledger.running("p1")).toEqual([]);
  expect(await ledger.round("p1", [], LIMITS, 0)).toEqual({ start: [], isOver: true });
  await ledger.cut("p3", ["b", "c"], [], []);
  expect(await ledger.progress(), "cut once").toMatchObject({ ranges: 2 });
});

test("a walk over other buckets, or of another version, begins at the first key", async () => {
  const { ledger, values } = await begun(["m"]);
  const [child] = (await ledger.round("p1", [], LIMITS, 0)).start as [Child];
  await ledger.pass(child, (await ledger.take(child))!.position, at("k", 3), BUDGET);
  expect(await ledger.begin("p1", "other", 86_400_000)).toMatchObject({ startMs: 86_400_000, ranges: 0 });
  expect(await ledger.take(child), "of a day ago").toBeUndefined();
  await ledger.cut("p1", [], [], []);
  values.delete("range:000000");
  expect(await ledger.begin("p1", "other", 99), "a ledger that has lost a range").toMatchObject({
    startMs: 99,
    ranges: 0,
  });
});

test("a cut that did not come to its end leaves no range behind", async () => {
  const { ledger, values } = await begun(["a", "b", "c"]);
  values.set("open", { ...(values.get("open") as object), ranges: 0 });
  await ledger.cut("p1", ["k"], [], []);
  expect(await ledger.progress()).toMatchObject({ ranges: 2 });
  expect([...values.keys()].filter((name) => name.startsWith("range:"))).toHaveLength(2);
});

test.each([
  ["behind its end", "n"],
  ["before its start", "b"],
])("a part that ends %s is refused, and changes nothing", async (_, key) => {
  const { ledger } = await begun(["c", "m"]);
  const { start } = await ledger.round("p1", [], LIMITS, 0);
  const child = start.find(({ index }) => index === 1)!;
  const { position } = (await ledger.take(child))!;
  const passed = ledger.pass(child, position, at(key, 9), BUDGET);
  await expect(passed).rejects.toMatchObject({ code: "INTERNAL", details: { after: "c", until: "m", cursor: key } });
  expect((await ledger.take(child))?.position).toEqual(position);
});

test("overlapping ranges are refused", async () => {
  const { ledger } = ledgerOf();
  await ledger.claim("p1", undefined);
  await ledger.begin("p1", "all", 1);
  await expect(ledger.cut("p1", ["b", "a"], [], [])).rejects.toMatchObject({ code: "INTERNAL" });
});

test("requests beyond the budget stop the walk, and the next parent has a budget of its own", async () => {
  const { ledger } = await begun(["m"]);
  const limits = { ...LIMITS, requests: 10 };
  const { start } = await ledger.round("p1", [], limits, 0);
  const [a, b] = start as [Child, Child];
  expect(await ledger.pass(a, (await ledger.take(a))!.position, at("c", 1), { spent: 9, max: 10 })).toBe(true);
  expect(await ledger.pass(b, (await ledger.take(b))!.position, at("n", 1), { spent: 9, max: 10 })).toBe(false);
  expect(await ledger.round("p1", [], limits, 0)).toEqual({ start: [], isOver: false });
  expect(await ledger.pass(a, at("c", 1), at("d", 2), { spent: 9, max: 10 })).toBe(false);
  expect(await ledger.round("p1", [], limits, 0)).toEqual({ start: [], isOver: true });
  await ledger.claim("p2", "p1");
  await ledger.begin("p2", "all", 0);
  expect((await ledger.round("p2", [], limits, 0)).start).toHaveLength(2);
});

test("dollars for full reads are shared: ranges together never spend more, and what one leaves the others have", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true })),
      async (n, parts) => {
        const { ledger } = await begun(Array.from({ length: n }, (_, i) => `k${i}`));
        let spent = 0;
        for (;;) {
          const { start, isOver, ...rest } = await ledger.round("p1", [], { ...LIMITS, usd: 5 }, 0);
          if (isOver) {
            expect("ended" in rest).toBe(true);
            break;
          }
          for (const child of start) {
            const { usd, position, until = "z" } = (await ledger.take(child))!;
            const readUsd = usd! * (parts.pop() ?? 1);
            spent += readUsd;
            await ledger.pass(child, position, { after: until, totals: totalsOf({ readUsd }), isEnd: true }, BUDGET);
          }
        }
        expect(spent).toBeLessThanOrEqual(5 + 1e-9);
      },
    ),
  );
});

test("a last walk that lacks a count is none: a sum with it would be no number", async () => {
  const { unread: _unread, ...older } = NO_TOTALS;
  const { ledger } = ledgerOf(new Map([["last", { totals: older, startMs: 1, endMs: 2 }]]));
  expect(await ledger.last()).toBeUndefined();
});
