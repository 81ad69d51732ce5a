import { expect, test } from "vitest";
import { NO_PEERS, type PeerView } from "../cooperation/peer-view.ts";
import { estimateSavings, imbalancePercent, type ServedObject, type ServedView } from "./savings.ts";

/** A (2, 2) code in four regions, 10, 20, 40 and 80 ms away. */
const regions = [10, 20, 40, 80].map((meanMs, i) => ({ name: `r${i}`, meanMs, sdMs: 0, down: false }));
const view: ServedView = { regions, peers: NO_PEERS, cacheMs: 1, delta: 0 };
const served = (chunks: number[], popularity = 1): ServedObject => ({
  object: {
    key: "a",
    version: "v",
    k: 2,
    m: 2,
    placement: ["r0", "r1", "r2", "r3"],
    stripes: 1,
    chunkBytes: 1,
    shardBytes: 0,
  },
  popularity,
  chunks,
});

test("caching saves the difference to a read of the two nearest regions", () => {
  expect(estimateSavings([served([1])], view)).toMatchObject({ requests: 1, readMs: 10, savedMs: { caching: 10 } });
  expect(estimateSavings([served([0, 1])], view)).toMatchObject({ readMs: 1, savedMs: { caching: 19 } });
});

test("a functional chunk saves nothing beside its copy's option where that one is as good, and counts", () => {
  expect(estimateSavings([served([4])], view)).toMatchObject({
    readMs: 10,
    functionalChunks: 1,
    savedMs: { functional: 0 },
  });
});

test("beside a peer's copy of the nearest chunk, a row is worth more than the copy", () => {
  const peers: PeerView = {
    ...NO_PEERS,
    chunksOf: () => [{ chunk: 3, pop: "lhr", meanMs: 5, sdMs: 0 }],
  };
  const { readMs, savedMs } = estimateSavings([served([4])], { ...view, peers })!;
  expect(readMs).toBe(5);
  expect(savedMs.cooperation).toBe(5);
  expect(savedMs.caching).toBe(5);
});

test("means weigh objects by their requests, and objects without any do not count", () => {
  const savings = estimateSavings([served([0, 1], 3), served([], 1), served([0, 1], 0)], view)!;
  expect(savings).toMatchObject({ requests: 4, readMs: (3 * 1 + 20) / 4 });
  expect(estimateSavings([served([], 0)], view)).toBeUndefined();
});

test("a data chunk of a region that is down counts as recovered; parity does not", () => {
  const lost = { ...view, regions: regions.map((region, i) => ({ ...region, down: i === 0 || i === 3 })) };
  expect(estimateSavings([served([0, 3])], lost)).toMatchObject({ recovered: 1 });
});

test("imbalance is EC-Cache's equation (1), by the regions that reads ask", () => {
  expect(imbalancePercent([3, 1, 1, 1])).toBe(100);
  expect(imbalancePercent([2, 2])).toBe(0);
  expect(imbalancePercent([0, 0])).toBe(0);
  // Both reads ask r0 and r1 of four regions: twice the mean.
  expect(estimateSavings([served([], 2)], view)).toMatchObject({ imbalancePercent: 100 });
});

test("egress is what reads pay the regions that they ask, and what the cache spares them", () => {
  const egressUsdPerGb = new Map([["r1", 0.1]]);
  const object = { ...served([]).object, chunkBytes: 1e9 };
  const egressOf = (chunks: number[]) =>
    estimateSavings([{ object, popularity: 2, chunks }], { ...view, egressUsdPerGb })!.egressUsd;
  expect(egressOf([])).toEqual({ paid: 0.1, saved: 0 });
  expect(egressOf([2])).toEqual({ paid: 0, saved: 0.1 });
  expect(estimateSavings([served([2])], view)!.egressUsd).toEqual({ paid: 0, saved: 0 });
});
