import fc from "fast-check";
import { expect, test } from "vitest";
import { sampleObject } from "../../test/objects/sample-object.ts";
import { partsAnswer, RANGES_MAX, type PartsAnswer } from "./object-parts.ts";

const BYTES = 1_000;
const { manifest } = await sampleObject({ k: 2, m: 1, bytes: BYTES, stripeBytes: 100 });
const answerTo = (range: string): ReturnType<typeof partsAnswer> =>
  partsAnswer(manifest, new Headers({ range }), "boundary");

test.each([["bytes=0-9"], ["bytes=0-9,"], ["items=0-9,20-29"], ["0-9,20-29"], [""]])(
  "%j is not several ranges",
  (range) => {
    const answer = answerTo(range);
    expect(answer === undefined || !("parts" in answer)).toBe(true);
  },
);

test("a length that is stated is that of the heads, the ranges and the end", () => {
  const { headers, parts, end, status } = answerTo("bytes=0-9,990-") as PartsAnswer;
  expect([status, headers["content-type"]]).toEqual([206, "multipart/byteranges; boundary=boundary"]);
  expect(parts.map(({ range }) => range)).toEqual([
    { start: 0, end: 10 },
    { start: 990, end: 1_000 },
  ]);
  const heads = parts.map(({ head }) => head).join("");
  expect(headers["content-length"]).toBe(String(heads.length + 20 + end.length));
  expect(headers["content-range"]).toBeUndefined();
});

test("whatever is asked for, the parts lie in the object, do not overlap, and are few", () => {
  const open = fc.constantFrom("-5", "1190-", "995-");
  const closed = fc.tuple(fc.nat({ max: 119 }), fc.nat({ max: 12 })).map(([i, more]) => `${10 * i}-${10 * i + more}`);
  const specs = fc.array(fc.oneof({ weight: 9, arbitrary: closed }, open), { minLength: 2, maxLength: 20 });
  let several = 0;
  fc.assert(
    fc.property(specs, (asked) => {
      let answer: ReturnType<typeof partsAnswer>;
      try {
        answer = answerTo(`bytes=${asked.join()}`);
      } catch (error) {
        expect(error).toMatchObject({ code: "RANGE_UNSATISFIABLE" });
        return;
      }
      if (!answer || !("parts" in answer)) return;
      several++;
      const ranges = answer.parts.map(({ range }) => range).toSorted((a, b) => a.start - b.start);
      expect(ranges.length).toBeLessThanOrEqual(RANGES_MAX);
      for (const [i, { start, end }] of ranges.entries()) {
        expect(start).toBeGreaterThanOrEqual(i === 0 ? 0 : ranges[i - 1]!.end);
        expect(end).toBeGreaterThan(start);
        expect(end).toBeLessThanOrEqual(BYTES);
      }
    }),
    { numRuns: 2_000 },
  );
  expect(several, "answers of several parts").toBeGreaterThan(10);
});
