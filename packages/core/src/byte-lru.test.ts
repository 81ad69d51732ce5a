import { expect, test } from "vitest";
import { ByteLru } from "./byte-lru.ts";

const filled = (lru: ByteLru<{ bytes: number }>, names: string): ByteLru<{ bytes: number }> => {
  for (const name of names) lru.set(name, { bytes: 10 });
  return lru;
};
const kept = (lru: ByteLru<{ bytes: number }>, names: string): string =>
  [...names].filter((name) => lru.get(name)).join("");

test("what was used longest ago goes first", () => {
  const lru = filled(new ByteLru(30), "abc");
  lru.get("a");
  lru.set("d", { bytes: 10 });
  expect(kept(lru, "abcd")).toBe("acd");
});

test("a value that grows takes the room of others, and one that is replaced counts once", () => {
  const lru = filled(new ByteLru(30), "abc");
  lru.set("c", { bytes: 10 });
  expect(kept(lru, "abc")).toBe("abc");
  lru.set("c", { bytes: 20 });
  expect(kept(lru, "abc")).toBe("bc");
});

test("a value larger than everything is not kept, and what is deleted makes room", () => {
  const lru = filled(new ByteLru(20), "a");
  lru.set("huge", { bytes: 21 });
  expect(lru.get("huge")).toBeUndefined();
  filled(lru, "bc").delete("b");
  lru.set("d", { bytes: 10 });
  expect(kept(lru, "bcd")).toBe("cd");
});
