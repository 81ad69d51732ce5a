import { expect, test } from "vitest";
import {
  durationText,
  parseAddress,
  parseCode,
  parseCount,
  parseDuration,
  parseNumber,
  parsePort,
  parseSize,
} from "./units.ts";

test.each([
  [parseDuration(), "90s", 90_000],
  [parseDuration(), "12h", 43_200_000],
  [parseDuration({ min: 0 }), "0", 0],
  [parseSize, "16GiB", 16 * 2 ** 30],
  [parseSize, "1.5MB", 1_500_000],
  [parseSize, "8000", 8_000],
  [parseCount({ max: 64 }), "64", 64],
  [parseNumber(), "0.25", 0.25],
  [parsePort, "0", 0],
  [parseCode, "9+3", { k: 9, m: 3 }],
  [parseCode, "auto", "auto"],
  [parseAddress, ":80", { host: "::", port: 80 }],
])("%# %s is read", (parse, text, value) => expect(parse(text)).toEqual(value));

test.each([
  [parseDuration(), "12"],
  [parseDuration(), "0"],
  [parseDuration({ max: 60_000 }), "2m"],
  [parseSize, "16 apples"],
  [parseSize, "-1"],
  [parseCount({ min: 1 }), "0"],
  [parseCount(), "1e3"],
  [parseNumber({ max: 1 }), "2"],
  [parseNumber(), " "],
  [parsePort, "65536"],
  [parseCode, "0+3"],
  [parseAddress, "host:99999"],
])("%# %j is refused, and the message begins with it", (parse, text) => {
  expect(() => parse(text)).toThrow(
    expect.objectContaining({ code: "USAGE", message: expect.stringMatching(/^\S* /) }),
  );
  expect(() => parse(text)).toThrow(text);
});

test("a duration is printed as an option spells it", () => {
  expect([1_000, 3_600_000, 90_000, 172_800_000].map(durationText)).toEqual(["1s", "1h", "90s", "2d"]);
});
