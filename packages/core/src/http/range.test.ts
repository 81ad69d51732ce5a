import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { attempt, errorOf } from "../../test/errors.ts";
import { contentRange, parseRange } from "./range.ts";

describe("parseRange of 100 bytes", () => {
  const met: Record<string, [number, number]> = {
    "bytes=0-0": [0, 1],
    "bytes=0-99": [0, 100],
    "bytes=0-": [0, 100],
    "bytes=99-": [99, 100],
    "bytes=10-19": [10, 20],
    "bytes=10-1000": [10, 100],
    "bytes=-1": [99, 100],
    "bytes=-100": [0, 100],
    "bytes=-1000": [0, 100],
    "BYTES=5-6": [5, 7],
    " bytes = 5 - 6 ": [5, 7],
    "bytes=007-08": [7, 9],
    "bytes=0-99999999999999999999999": [0, 100],
  };
  for (const [header, [start, end]] of Object.entries(met)) {
    test(`satisfies ${header}`, () => expect(parseRange(header, 100)).toEqual({ start, end }));
  }

  for (const header of [
    "",
    "bytes",
    "bytes=",
    "bytes=-",
    "bytes=a-b",
    "bytes=5-3",
    "bytes=1-2,5-6",
    "bytes=1.5-3",
    "bytes=--1",
    "bytes=0x1-2",
    "items=0-1",
  ]) {
    test(`sends everything for ${JSON.stringify(header)}`, () => {
      expect(parseRange(header, 100)).toBeUndefined();
    });
  }

  test("sends everything without a header", () => {
    expect(parseRange(null, 100)).toBeUndefined();
    expect(parseRange(undefined, 100)).toBeUndefined();
  });

  for (const header of ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=99999999999999999999999-"]) {
    test(`refuses ${header}`, () => {
      expect(errorOf(() => parseRange(header, 100))).toMatchObject({
        code: "RANGE_UNSATISFIABLE",
        httpStatus: 416,
        details: { range: header, bytes: 100 },
      });
    });
  }
});

test("a satisfied range is never empty and never outside the object", () => {
  const part = fc.oneof(fc.constant(""), fc.nat(300).map(String));
  fc.assert(
    fc.property(part, part, fc.nat(200), (first, last, bytes) => {
      const range = attempt(() => parseRange(`bytes=${first}-${last}`, bytes));
      if (range === undefined) return;
      if (range instanceof Error) {
        expect(range).toMatchObject({ code: "RANGE_UNSATISFIABLE" });
        return;
      }
      expect(range.start).toBeGreaterThanOrEqual(0);
      expect(range.end).toBeGreaterThan(range.start);
      expect(range.end).toBeLessThanOrEqual(bytes);
    }),
  );
});

test("contentRange includes the last byte", () => {
  expect(contentRange({ start: 5, end: 7 }, 100)).toBe("bytes 5-6/100");
});
