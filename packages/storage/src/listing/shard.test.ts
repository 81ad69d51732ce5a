import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseShard } from "../maintenance/amounts.ts";
import { isInShard } from "./shard.ts";

const shardsOf = (count: number) => Array.from({ length: count }, (_, i) => ({ index: i + 1, count }));

test("each name is in exactly one of n shards", () => {
  fc.assert(
    fc.property(fc.string(), fc.integer({ min: 1, max: 200 }), (name, count) => {
      expect(shardsOf(count).filter((shard) => isInShard(name, shard))).toHaveLength(1);
    }),
  );
});

test.each([2, 3, 8, 64])("names that count up are spread over %i shards evenly", (count) => {
  const names = Array.from({ length: 2_000 * count }, (_, i) => `photos/${String(i).padStart(8, "0")}.jpg!`);
  for (const shard of shardsOf(count)) {
    const { length } = names.filter((name) => isInShard(name, shard));
    expect(Math.abs(length - 2_000), `${shard.index}/${count}`).toBeLessThan(300);
  }
});

test("a shard is written as its number and how many there are", () => {
  expect(parseShard("2/8")).toEqual({ index: 2, count: 8 });
  expect(parseShard("1/1")).toEqual({ index: 1, count: 1 });
});

test.each(["0/8", "9/8", "1/0", "2", "/8", "2/", "-1/8", "1.5/8", "1/10001", "2/8/1", ""])("%j is USAGE", (text) => {
  expect(() => parseShard(text)).toThrow(expect.objectContaining({ code: "USAGE" }));
});
