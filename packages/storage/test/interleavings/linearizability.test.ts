/** The checker of histories knows good ones from bad ones. */
import { expect, test } from "vitest";
import { isLinearizable, type HistoryEntry } from "./linearizability.ts";

type More = Partial<HistoryEntry>;

const put = (value: string, start: number, end: number, more: More = {}): HistoryEntry => {
  return { kind: "put", value, start, end, outcome: "done", ...more };
};
const read = (value: string | undefined, start: number, end: number): HistoryEntry => {
  return { kind: "read", value, start, end, outcome: "done" };
};
const remove = (start: number, end: number, more: More = {}): HistoryEntry => {
  return { kind: "remove", start, end, outcome: "done", ...more };
};
const open = { end: Number.POSITIVE_INFINITY, outcome: "open" } as const;
const ifAbsent = { expected: { value: undefined } };
const ifA = { expected: { value: "a" } };

test.each<[string, HistoryEntry[]]>([
  ["nothing", []],
  [
    "one after the other",
    [read(undefined, 0, 1), put("a", 2, 3), read("a", 4, 5), remove(6, 7), read(undefined, 8, 9)],
  ],
  ["a read beside a put sees either version", [put("a", 0, 9), read(undefined, 1, 2), read("a", 3, 4)]],
  ["two puts at once end in either order", [put("a", 0, 9), put("b", 1, 8), read("b", 10, 11), read("b", 12, 13)]],
  ["an open put may happen late", [put("a", 0, 1), put("b", 2, 0, open), read("a", 3, 4), read("b", 9, 10)]],
  ["an open put may never happen", [put("a", 0, 1), put("b", 2, 0, open), read("a", 3, 4), read("a", 9, 10)]],
  ["an open removal may happen", [put("a", 0, 1), remove(2, 0, open), read(undefined, 3, 4)]],
  ["one of two conditional puts wins", [put("a", 0, 5, ifAbsent), put("b", 1, 6, { ...ifAbsent, outcome: "refused" })]],
  ["a condition that held", [put("a", 0, 1), put("b", 2, 3, ifA), read("b", 4, 5)]],
  ["a refusal by an open put", [put("a", 0, 0, open), put("b", 2, 3, { ...ifAbsent, outcome: "refused" })]],
])("is linearizable: %s", (_, history) => {
  expect(isLinearizable(history)).toBe(true);
});

test.each<[string, HistoryEntry[]]>([
  ["an old version after an acknowledged put", [put("a", 0, 1), put("b", 2, 3), read("a", 4, 5)]],
  ["an object after its removal", [put("a", 0, 1), remove(2, 3), read("a", 4, 5)]],
  ["nothing after a put", [put("a", 0, 1), read(undefined, 2, 3)]],
  ["new, then old, beside a put", [put("a", 0, 1), put("b", 2, 20), read("b", 3, 4), read("a", 5, 6)]],
  ["an open put that comes and goes", [put("a", 0, 1), put("b", 2, 0, open), read("b", 3, 4), read("a", 5, 6)]],
  ["a value that nobody has put", [put("a", 0, 1), read("c", 2, 3)]],
  ["a value before its put began", [read("a", 0, 1), put("a", 2, 3)]],
  ["two conditional puts that both won", [put("a", 0, 5, ifAbsent), put("b", 1, 6, ifAbsent)]],
  ["a refusal by what never was", [put("b", 2, 3, { ...ifAbsent, outcome: "refused" })]],
  ["an update that was lost", [put("a", 0, 1), put("b", 2, 3), put("c", 4, 5, ifA)]],
  [
    "a late effect of an open put after two reads",
    [put("b", 0, 0, open), put("a", 1, 2), read("b", 3, 4), read("a", 5, 6)],
  ],
])("is not linearizable: %s", (_, history) => {
  expect(isLinearizable(history)).toBe(false);
});

test("a long history of many clients at once is decided, because states are remembered", () => {
  const writers = Array.from({ length: 14 }, (_, id) => put(String(id), id, 100 + id));
  expect(isLinearizable([...writers, read("3", 200, 201), read("3", 202, 203)])).toBe(true);
  expect(isLinearizable([...writers, read("3", 200, 201), read("4", 202, 203)])).toBe(false);
});
