import { parseScenario, simulate } from "@agarose/solver/simulator";
import { expect, test } from "vitest";
import { tableOf } from "./simulate.ts";

const PEERS = [
  { name: "p", peerLatencyMs: { q: 20 } },
  { name: "q", peerLatencyMs: { p: 20 } },
];

const SCENARIO = parseScenario({
  name: "two",
  code: { k: 2, m: 1 },
  objects: { count: 5, bytes: 1000 },
  regions: ["a", "b", "c"],
  pops: PEERS.map((pop) => ({
    ...pop,
    regionLatencyMs: { a: 100, b: 200, c: 300 },
    cacheLatencyMs: 5,
    capacityChunks: 4,
  })),
  popularity: { type: "uniform" },
  requests: { perSecond: 10, count: 100 },
  events: ["a", "b"].map((region) => ({ atSeconds: 5, forSeconds: 1, region, down: true })),
  decide: "request",
  policies: [{ name: "backend" }, { name: "c2p" }],
});

test("the lines below the table count failed reads and messages between PoPs", () => {
  const rows = simulate(SCENARIO);
  const lines = tableOf(SCENARIO, rows);
  expect(lines.slice(0, 2)).toEqual([expect.stringContaining("two"), expect.stringContaining("mean ms")]);
  expect(lines[0]).toContain("caches change at each request");
  const notes = lines.slice(2 + rows.length);
  const all = rows.filter(({ pop }) => pop === "all");
  expect(notes).toContain(`backend: ${all[0]!.failedReads} reads could not be completed`);
  expect(notes.at(-1)).toBe(`c2p: ${all[1]!.messages} messages between PoPs`);
  expect(all[0]!.failedReads).toBeGreaterThan(0);
});

test("the first line names the cadence of the PoPs that the caches change by", () => {
  const [first] = tableOf({ ...SCENARIO, decide: "period" }, []);
  expect(first).toContain("caches change every 5 s, and KV is written every 60 s");
});
