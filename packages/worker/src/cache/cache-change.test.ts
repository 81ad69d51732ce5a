import type { PlannedContents } from "@agarose/solver/planner";
import { expect, test } from "vitest";
import { advance, diffCache, leftovers, promise } from "./cache-change.ts";
import type { LedgerEntry } from "./ledger.ts";

const entry = (version: string, changes: Partial<LedgerEntry> = {}): LedgerEntry => ({
  version,
  key: version,
  stripes: 2,
  chunkBytes: 100,
  chunks: [1, 2],
  target: [1, 2],
  done: 2,
  ...changes,
});

const planned = (version: string, chunks: number[], changes: Partial<PlannedContents> = {}): PlannedContents => ({
  object: { key: version, version, k: 4, m: 2, placement: [], stripes: 2, chunkBytes: 100, shardBytes: 50 },
  chunks,
  worth: 1,
  ...changes,
});

test("what is cached as planned is left alone", () => {
  expect(diffCache([entry("a")], [planned("a", [1, 2])])).toEqual({ evict: [], fill: [], announce: [] });
});

test("while an object's chunks change, promises only those that old and new share", () => {
  const { announce, fill } = diffCache([entry("a")], [planned("a", [2, 3])]);
  expect(promise(announce).get("a")).toMatchObject({ chunks: [2] });
  expect(promise([advance(fill[0]!.entry, 1)]).get("a")).toMatchObject({ chunks: [2] });
  expect(promise([advance(fill[0]!.entry, 2)]).get("a")).toEqual({ key: "a", chunks: [2, 3], stripes: 2 });
});

test("a target that changes again before it was reached promises what has been true all along", () => {
  const halfway = entry("a", { chunks: [2], target: [2, 3], done: 1 });
  const { announce } = diffCache([halfway], [planned("a", [3, 4])]);
  expect(announce[0]).toMatchObject({ chunks: [], target: [3, 4], done: 0 });
});

test("an object that is half filled continues where it stopped", () => {
  const halfway = entry("a", { chunks: [], done: 1 });
  const { announce, fill } = diffCache([halfway], [planned("a", [1, 2])]);
  expect(announce).toEqual([]);
  expect(fill.map((job) => job.entry)).toEqual([halfway]);
});

test("what is not planned is evicted and not promised any more", () => {
  const { announce, evict } = diffCache([entry("a"), entry("b")], [planned("b", [1, 2])]);
  expect(evict.map(({ version }) => version)).toEqual(["a"]);
  expect(promise(announce)).toEqual(new Map());
});

test("an eviction that was interrupted is taken up again, even if the object is wanted now", () => {
  const leaving = entry("a", { chunks: [], target: [], done: 0 });
  expect(diffCache([leaving], []).evict).toEqual([leaving]);
  expect(diffCache([leaving], [planned("a", [1])]).fill[0]!.entry).toMatchObject({ target: [1], done: 0 });
});

test("while it is another PoP's turn, what was begun continues, and nothing else begins", () => {
  const ledger = [
    entry("half", { chunks: [], done: 1 }),
    entry("leaving", { chunks: [], target: [], done: 0 }),
    entry("unwanted"),
    entry("other"),
  ];
  const wanted = [planned("half", [1, 2]), planned("other", [3]), planned("new", [1])];
  const change = diffCache(ledger, wanted);
  expect(change.announce.length, "there is something to begin").toBeGreaterThan(0);
  const { evict, fill, announce } = leftovers(change, new Map(ledger.map((one) => [one.version, one])));
  expect(evict.map(({ version }) => version)).toEqual(["leaving"]);
  expect(fill.map((one) => one.entry.version)).toEqual(["half"]);
  expect(announce).toEqual([]);
});
