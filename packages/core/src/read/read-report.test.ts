import { describe, expect, test } from "vitest";
import { readKind, serverTiming, type ReadReport, type RequestRecord } from "./read-report.ts";

describe("readKind", () => {
  test("is where the used chunks came from", () => {
    expect(readKind(report([edge(), edge()]))).toBe("edge");
    expect(readKind(report([edge(), region()]))).toBe("mixed");
    expect(readKind(report([region(), region()]))).toBe("origin");
    expect(readKind(report([edge(), { ...edge(), kind: "peer" }]))).toBe("edge");
  });

  test("does not count cancelled or unused chunks", () => {
    const others = [region({ outcome: "cancelled" }), region({ outcome: "unused" }), region({ outcome: "pending" })];
    expect(readKind(report([edge(), ...others]))).toBe("edge");
  });

  test("is degraded when a source failed and was replaced", () => {
    expect(readKind(report([edge(), region({ outcome: "failed", error: "SOURCE_FAILED" })]))).toBe("degraded");
    expect(readKind(report([edge(), region({ outcome: "failed", error: "CHUNK_MISSING" })]))).toBe("degraded");
    expect(readKind(report([region(), edge({ outcome: "failed", error: "CHUNK_CORRUPT" })]))).toBe("degraded");
  });

  test("is not degraded when a cache does not hold a chunk any more", () => {
    expect(readKind(report([region(), edge({ outcome: "failed", error: "CHUNK_MISSING" })]))).toBe("origin");
  });

  test("of an empty object is edge: nothing was fetched from farther away", () => {
    expect(readKind(report([]))).toBe("edge");
  });
});

describe("serverTiming", () => {
  test("counts chunks and takes the slowest of each source, then the codec", () => {
    const requests = [
      edge({ startMs: 0, endMs: 10 }),
      region({ startMs: 0, endMs: 80 }),
      region({ startMs: 5, endMs: 105.25 }),
      region({ startMs: 0, endMs: 900, outcome: "cancelled" }),
    ];
    expect(serverTiming({ ...report(requests), decoding: { ms: 1.5, shards: 2 } })).toEqual([
      'edge-fra;desc="1 x edge-fra";dur=10.0',
      'region-dublin;desc="2 x region-dublin";dur=100.3',
      'decode;desc="2 x decode";dur=1.5',
    ]);
  });

  test("distinguishes a PoP and a region of the same name, and replaces characters that a header cannot carry", () => {
    const value = serverTiming(report([edge({ source: "são p\r\n" }), region({ source: "são p\r\n" })]));
    expect(value).toEqual([
      'edge-s_o_p__;desc="1 x edge-s_o_p__";dur=1.0',
      'region-s_o_p__;desc="1 x region-s_o_p__";dur=1.0',
    ]);
  });

  test("is empty while nothing has arrived", () => {
    expect(serverTiming(report([edge({ outcome: "pending", endMs: undefined })]))).toEqual([]);
  });
});

function report(requests: RequestRecord[]): ReadReport {
  return { startMs: 0, requests, decoding: { ms: 0, shards: 0 }, endMs: undefined };
}

function edge(overrides: Partial<RequestRecord> = {}): RequestRecord {
  return record({ source: "fra", kind: "edge", ...overrides });
}

function region(overrides: Partial<RequestRecord> = {}): RequestRecord {
  return record({ source: "dublin", kind: "region", ...overrides });
}

function record(overrides: Partial<RequestRecord>): RequestRecord {
  return {
    stripe: 0,
    chunk: 0,
    source: "",
    kind: "edge",
    bytes: 10,
    startMs: 0,
    endMs: 1,
    outcome: "used",
    error: undefined,
    ...overrides,
  };
}
