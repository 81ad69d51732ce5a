import { describe, expect, test } from "vitest";
import type { RegionEstimate } from "../options/sources.ts";
import type { PopularityDigest } from "./peer-message.ts";
import { peerView, type PeerReport } from "./peer-view.ts";

/** Two of four chunks make a read. As seen from London, the chunks are 10, 20, 30 and 40 ms away in their regions. */
const object = {
  key: "k",
  version: "v",
  k: 2,
  placement: ["r0", "r1", "r2", "r3"],
  shardBytes: 1_000,
  chunkBytes: 1_000,
};
const place = (name: string, meanMs: number, down = false): RegionEstimate => ({ name, meanMs, sdMs: 0, down });
const regions = [place("r0", 10), place("r1", 20), place("r2", 30), place("r3", 40)];

function london(popularity: Partial<PopularityDigest> = {}, report: Partial<PeerReport> = {}): PeerReport {
  return {
    name: "lhr",
    meanMs: 7,
    sdMs: 1,
    held: new Map(),
    popularity: { popular: [["k", 3]], regions, peers: [place("fra", 8)], ...popularity },
    ...report,
  };
}

function saved(peers: readonly PeerReport[], chunks: readonly number[]): number {
  return peerView({ pop: "fra", peers, cacheMs: 5, delta: 0 }).savedAtPeers(object, chunks);
}

describe("what a peer saves by chunks here", () => {
  test("is the time of its reads by what it holds itself, its regions and us", () => {
    // Without us a read ends with the chunk that is 20 ms away; with chunk 1 here, with the one 10 ms away; with any
    // other one too, as that comes in place of chunk 1; with two, when they are here, 8 ms away.
    expect(saved([london()], [])).toBe(0);
    expect(saved([london()], [1])).toBe(3 * (20 - 10));
    expect(saved([london()], [3])).toBe(3 * (20 - 10));
    expect(saved([london()], [0, 3])).toBe(3 * (20 - 8));
    expect(saved([london({}, { held: new Map([["v", [0]]]) })], [3])).toBe(3 * (20 - 8));
  });

  test("counts a byte's time on the way from a region", () => {
    const slow = regions.map((region) => ({ ...region, msPerByte: 0.01 }));
    expect(saved([london({ regions: slow })], [0, 3])).toBe(3 * (30 - 8));
  });

  test("is nothing where a third PoP that is nearer to it has the chunks already", () => {
    const paris: PeerReport = {
      name: "cdg",
      meanMs: 9,
      sdMs: 0,
      held: new Map([["v", [0, 1]]]),
      popularity: undefined,
    };
    const peers = [place("fra", 8), place("cdg", 6)];
    expect(saved([london({ peers }), paris], [2, 3])).toBe(0);
    expect(saved([london({ peers: [place("fra", 8), place("cdg", 6, true)] }), paris], [2, 3])).toBe(3 * (20 - 8));
  });

  test("is nothing while it does not reach us, has said nothing, or is not asked for the object", () => {
    expect(saved([london({ peers: [place("fra", 8, true)] })], [0, 3])).toBe(0);
    expect(saved([london({}, { popularity: undefined })], [0, 3])).toBe(0);
    expect(saved([london({ popular: [["other", 3]] })], [0, 3])).toBe(0);
  });

  test("uses our own measurement while it has none of its own", () => {
    expect(saved([london({ peers: [] }, { sdMs: 0 })], [0, 3])).toBe(3 * (20 - 7));
  });

  test("is large where too few of its regions are up without us", () => {
    const down = regions.map((region, i) => ({ ...region, down: i > 0 }));
    expect(saved([london({ regions: down })], [1])).toBeGreaterThan(100_000);
  });
});

test("peers' chunks are sources, and what they are asked for comes most first", () => {
  const paris: PeerReport = {
    name: "cdg",
    meanMs: 9,
    sdMs: 2,
    held: new Map([["v", [3]]]),
    popularity: {
      popular: [
        ["k", 1],
        ["l", 9],
      ],
      regions,
      peers: [],
    },
  };
  const view = peerView({
    pop: "fra",
    peers: [london({}, { held: new Map([["v", [0, 3]]]) }), paris],
    cacheMs: 5,
    delta: 0,
  });
  expect(view.chunksOf("v")).toEqual([
    { chunk: 0, pop: "lhr", meanMs: 7, sdMs: 1 },
    { chunk: 3, pop: "lhr", meanMs: 7, sdMs: 1 },
    { chunk: 3, pop: "cdg", meanMs: 9, sdMs: 2 },
  ]);
  expect(view.chunksOf("another")).toEqual([]);
  expect([...view.requests]).toEqual([
    ["l", 9],
    ["k", 4],
  ]);
});
