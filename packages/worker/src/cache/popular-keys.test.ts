import { expect, test } from "vitest";
import { popularKeys } from "./period-plan.ts";

const keysOf = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}${i}`);
const isKnown = (key: string): boolean => key.startsWith("known");
const MINUTE_MS = 60_000;

test("looks all up where they are few", () => {
  const asked = [...keysOf("known", 150), ...keysOf("new", 150)];
  expect(popularKeys(asked, isKnown, 0)).toEqual(asked);
});

test("learns 200 keys in each period, however many are known, and looks each of those up in turn", () => {
  const asked = [...keysOf("known", 1_000), ...keysOf("new", 1_000)];
  const seen = new Set<string>();
  for (let minute = 0; minute < 9; minute++) {
    const keys = popularKeys(asked, isKnown, minute * MINUTE_MS);
    expect(new Set(keys).size).toBe(400);
    expect(keys.slice(0, 100)).toEqual(keysOf("known", 100));
    expect(keys.filter((key) => !isKnown(key))).toEqual(keysOf("new", 200));
    for (const key of keys) seen.add(key);
  }
  expect(seen.size).toBe(1_000 + 200);
});

test("leaves no look-up unused", () => {
  const asked = [...keysOf("known", 1_000), ...keysOf("new", 50)];
  expect(popularKeys(asked, isKnown, 7 * MINUTE_MS)).toHaveLength(400);
  expect(popularKeys([...keysOf("known", 50), ...keysOf("new", 1_000)], isKnown, 0)).toHaveLength(400);
});
