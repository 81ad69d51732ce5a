import { expect, test } from "vitest";
import { ByteLru } from "./byte-lru.ts";

const filled = (lru: ByteLru<{ bytes: number }>, names: string): ByteLru<{ bytes: number }> => {
  for (const name of names) lru.set(name, { bytes: 10 });
  return lru;
};
const kept = (lru: ByteLru<{ bytes: number }>, names: string): string =>
  [...names].filter((name) => lru.get(name)).join("");

test("the least recently used value goes first", () => {
  const lru = filled(new ByteLru(30), "abc");
  lru.get("a");
  lru.set("d", { bytes: 10 });
  expect(kept(lru, "abcd")).toBe("acd");
});

test("a value that grows evicts others, and a replaced one counts once", () => {
  const lru = filled(new ByteLru(30), "abc");
  lru.set("c", { bytes: 10 });
  expect(kept(lru, "abc")).toBe("abc");
  lru.set("c", { bytes: 20 });
  expect(kept(lru, "abc")).toBe("bc");
});

test("a value above the maximum is not kept and evicts no other", () => {
  const lru = filled(new ByteLru(20), "ab");
  lru.set("huge", { bytes: 21 });
  expect(lru.get("huge")).toBeUndefined();
  expect(kept(lru, "ab")).toBe("ab");
  lru.set("a", { bytes: 21 });
  expect(kept(lru, "ab")).toBe("b");
});

test("a deleted value makes room", () => {
  const lru = filled(new ByteLru(20), "bc");
  lru.delete("b");
  lru.delete("b");
  lru.set("d", { bytes: 10 });
  expect(kept(lru, "bcd")).toBe("cd");
  expect(lru.names()).toEqual(["c", "d"]);
});
