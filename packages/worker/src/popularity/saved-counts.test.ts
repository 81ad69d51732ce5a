import * as fc from "fast-check";
import { expect, test } from "vitest";
import { decodeCounts, encodeCounts } from "./saved-counts.ts";

test("what does not fit is left out, the least requested first", () => {
  const counts = new Map([
    ["rare", 1],
    ["often", 9],
    ["häufig", 7],
  ]);
  const all = encodeCounts(counts);
  expect(decodeCounts(all)).toEqual([
    ["often", 9],
    ["häufig", 7],
    ["rare", 1],
  ]);
  expect(decodeCounts(encodeCounts(counts, all.length))).toHaveLength(3);
  expect(decodeCounts(encodeCounts(counts, all.length - 1))).toEqual([
    ["often", 9],
    ["häufig", 7],
  ]);
});

test("any counts stay within the bytes, and none that is left out is above one that is kept", () => {
  let sawLeftOut = false;
  let sawAll = false;
  const counted = fc.array(fc.tuple(fc.string({ unit: "binary", maxLength: 20 }), fc.integer({ min: 1 })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(counted, fc.integer({ min: 2, max: 800 }), (entries, bytesMax) => {
      const counts = new Map(entries);
      const bytes = encodeCounts(counts, bytesMax);
      expect(bytes.length).toBeLessThanOrEqual(bytesMax);
      const kept = decodeCounts(bytes);
      for (const [key, requests] of kept) expect(counts.get(key)).toBe(requests);
      const left = [...counts].filter(([key]) => !kept.some(([other]) => other === key));
      const least = Math.min(...kept.map(([, requests]) => requests));
      for (const [, requests] of left) expect(requests).toBeLessThanOrEqual(least);
      sawLeftOut ||= left.length > 0 && kept.length > 0;
      sawAll ||= left.length === 0 && kept.length > 0;
    }),
  );
  expect({ sawLeftOut, sawAll }).toEqual({ sawLeftOut: true, sawAll: true });
});
