import { expect, test } from "vitest";

import { MatrixCache } from "./matrix-cache.ts";

test("computes each pattern once", () => {
  const calls: string[] = [];
  const cache = new MatrixCache((present, wanted) => {
    calls.push(`${present}|${wanted}`);
    return new Uint8Array(present.length * wanted.length);
  });
  const matrix = cache.get([1, 2], [0]);
  expect(cache.get([1, 2], [0])).toBe(matrix);
  expect(cache.get([1], [2, 0])).not.toBe(matrix);
  expect(calls).toEqual(["1,2|0", "1|2,0"]);
});

test("what was used last stays when the cache is full, the oldest goes", () => {
  let computed = 0;
  const cache = new MatrixCache(() => {
    computed++;
    return new Uint8Array(60_000);
  });
  for (const wanted of [1, 2, 3, 4]) cache.get([0], [wanted]);
  cache.get([0], [1]);
  cache.get([0], [5]);
  expect(computed).toBe(5);
  cache.get([0], [1]);
  expect(computed).toBe(5);
  cache.get([0], [2]);
  expect(computed).toBe(6);
});
