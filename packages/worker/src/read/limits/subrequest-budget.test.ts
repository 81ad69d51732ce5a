import { expect, test } from "vitest";
import * as fc from "fast-check";
import type { Manifest } from "@agarose/core/format";
import type { ObjectAnswer } from "@agarose/core/http";
import { costOf, readCost, withinReach, type ReadCost } from "./subrequest-budget.ts";

const MIB = 1024 * 1024;
/** (9, 3) in stripes of 4 MiB, so that one GET brings 16 of them. */
const shape = { k: 9, stripeBytes: 4 * MIB };

const stripesOf = (cost: ReadCost, subrequestsMax: number): number => {
  const bytes = 2 ** 50;
  const manifest = { ...shape, key: "x", bytes } as Manifest;
  const answer: ObjectAnswer = { status: 206, headers: {}, range: { start: 0, end: bytes } };
  return withinReach(answer, manifest, cost, subrequestsMax).range!.end / shape.stripeBytes;
};

test("buckets are asked once for 64 MiB, the cache three times a stripe, peers for each chunk that they have", () => {
  const cost = (cached: number, atPeers: number) => readCost(shape, { delta: 1, cached, atPeers });
  expect(costOf(cost(0, 0), 17)).toBe(17 * 1 + 2 * 10);
  expect(costOf(cost(4, 0), 17)).toBe(17 * (3 + 1) + 2 * 10);
  expect(costOf(cost(4, 5), 17)).toBe(17 * (3 + 5 + 1) + 2 * 10);
  expect(costOf(cost(0, 12), 17), "no more than k are read").toBe(17 * (9 + 1) + 2 * 10);
});

test("an answer is as long as four fifths of the subrequests take it, and a stripe at least", () => {
  let sawOne = false;
  let sawMore = false;
  const costs = fc.record({ delta: fc.nat(3), cached: fc.nat(9), atPeers: fc.nat(12) });
  fc.assert(
    fc.property(costs, fc.integer({ min: 1, max: 20_000 }), (view, subrequestsMax) => {
      const cost = readCost(shape, view);
      const stripes = stripesOf(cost, subrequestsMax);
      if (stripes > 1) expect(costOf(cost, stripes)).toBeLessThanOrEqual(0.8 * subrequestsMax);
      expect(costOf(cost, stripes + 1)).toBeGreaterThan(0.8 * subrequestsMax);
      sawOne ||= stripes === 1;
      sawMore ||= stripes > 100;
    }),
  );
  expect({ sawOne, sawMore }).toEqual({ sawOne: true, sawMore: true });
});
