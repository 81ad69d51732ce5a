import { describe, expect, test } from "vitest";
import type { ReadEvent, RequestEvent } from "@agarose/sw";
import { applyEvent } from "./read-events.ts";
import { ReadLog, readOfEdgeAnswer, usedChunks } from "./reads.ts";

const START: ReadEvent = { type: "read-start", read: "r", key: "a.jpg", method: "GET", range: undefined, at: 1000 };
const PLAN: ReadEvent = {
  type: "plan",
  read: "r",
  ms: 12,
  from: "edge",
  pop: "fra",
  version: "v",
  bytes: 100,
  k: 2,
  m: 1,
  delta: 1,
  cached: [1],
  expectedMs: 40,
};

function request(number: number, change: Partial<RequestEvent>): ReadEvent {
  return {
    type: "request",
    read: "r",
    request: number,
    stripe: 0,
    chunk: number,
    source: "dublin",
    kind: "region",
    bytes: 50,
    startMs: 12,
    endMs: undefined,
    outcome: "pending",
    error: undefined,
    ...change,
  };
}

function end(change: object = {}): ReadEvent {
  const defaults = { type: "read-end", read: "r", ms: 60, status: 200, kind: "mixed", firstByteMs: 58 };
  const rest = { bytes: 100, decodeMs: 0.5, decodedShards: 1, error: undefined };
  return { ...defaults, ...rest, ...change } as ReadEvent;
}

describe("a read that the service worker reports", () => {
  test("is followed from its start to its end, each request once", () => {
    const log = new ReadLog();
    const events = [
      START,
      PLAN,
      request(0, {}),
      request(1, { source: "fra", kind: "edge" }),
      request(2, {}),
      request(1, { source: "fra", kind: "edge", endMs: 20, outcome: "used" }),
      request(2, { endMs: 58, outcome: "used" }),
      request(0, { endMs: 58, outcome: "cancelled" }),
      end(),
    ];
    for (const event of events) applyEvent(log, event);
    const [read] = log.all;
    expect(read).toMatchObject({
      key: "a.jpg",
      k: 2,
      delta: 1,
      ms: 60,
      kind: "mixed",
      bytes: 100,
      decoder: "service worker",
    });
    expect(read!.requests.map(({ outcome }) => outcome)).toEqual(["cancelled", "used", "used"]);
    expect(usedChunks(read!)).toEqual({ edge: 1, all: 2 });
    expect(read!.decodedShards).toBe(1);
    // The plan expects 40 ms from when it was there.
    expect(read!.expectedMs).toBe(52);
  });

  test("asked for a chunk that the cache has dropped: that is no failure of the cache", () => {
    const log = new ReadLog();
    const missing = { endMs: 15, outcome: "failed", error: "CHUNK_MISSING" } as const;
    for (const event of [START, PLAN, request(0, { kind: "edge", ...missing }), request(1, missing)])
      applyEvent(log, event);
    expect(log.get("r")!.requests.map(({ outcome }) => outcome)).toEqual(["gone", "failed"]);
  });

  test("has failed when its end has an error, but not when its consumer had enough", () => {
    const log = new ReadLog();
    applyEvent(log, START);
    applyEvent(log, end({ error: "NOT_ENOUGH_CHUNKS" }));
    expect(log.get("r")!.error).toEqual({ code: "NOT_ENOUGH_CHUNKS" });
    applyEvent(log, START);
    applyEvent(log, end({ error: "ABORTED" }));
    expect(log.get("r")!.error).toBeUndefined();
  });

  test("is left out when it began unseen, or asks for headers only", () => {
    const log = new ReadLog();
    applyEvent(log, end());
    applyEvent(log, { ...START, method: "HEAD" } as ReadEvent);
    expect(log.all).toEqual([]);
  });
});

test("a read decoded at the edge is known by source from its Server-Timing", () => {
  const serverTiming =
    'plan;desc="edge plan";dur=9.0, edge-fra;desc="6 x edge-fra";dur=12.0, region-n-virginia;desc="3 x region-n-virginia";dur=51.2, decode;desc="2 x decode";dur=1.1';
  const read = readOfEdgeAnswer({ key: "a", at: 1, ms: 70, bytes: 9, kind: "mixed", error: undefined }, serverTiming);
  expect(read.requests.map(({ source, kind, chunks, endMs }) => [kind, source, chunks, endMs])).toEqual([
    ["edge", "fra", 6, 12],
    ["region", "n-virginia", 3, 51.2],
  ]);
  expect(usedChunks(read)).toEqual({ edge: 6, all: 9 });
  expect(read).toMatchObject({ decodeMs: 1.1, decodedShards: 2, decoder: "edge" });
});

test("the log keeps the newest reads only", () => {
  const log = new ReadLog();
  for (let i = 0; i < 1000; i++) applyEvent(log, { ...START, read: `r${i}` } as ReadEvent);
  expect(log.all.length).toBeLessThan(1000);
  expect(log.get("r999")).toBeDefined();
  expect(log.get("r0")).toBeUndefined();
});
