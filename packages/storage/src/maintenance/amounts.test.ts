import { expect, test } from "vitest";
import {
  durationText,
  parseDuration,
  parseInventoryPlace,
  parseMoney,
  parseRate,
  parseShare,
  parseSize,
} from "./amounts.ts";

test.each([
  [parseDuration(), "90s", 90_000],
  [parseDuration(), "12h", 43_200_000],
  [parseDuration({ min: 0 }), "0", 0],
  [parseSize, "16GiB", 16 * 2 ** 30],
  [parseSize, "1.5MB", 1_500_000],
  [parseSize, "8000", 8_000],
  [parseRate, "10MB/s", 10_000_000],
  [parseRate, "512KiB/s", 512 * 1_024],
  [parseShare, "1%", 0.01],
  [parseShare, ".5", 0.5],
  [parseMoney, "$0.25", 0.25],
  [parseInventoryPlace, "eu=s3://reports/eu/daily", { region: "eu", bucket: "reports", path: "eu/daily" }],
])("%# %s is read", (parse, text, value) => expect(parse(text)).toEqual(value));

test.each([
  [parseDuration(), "12"],
  [parseDuration(), "0"],
  [parseDuration({ max: 60_000 }), "2m"],
  [parseSize, "16 apples"],
  [parseSize, "-1"],
  [parseRate, "10MB"],
  [parseRate, "10/s"],
  [parseRate, "0B/s"],
  [parseShare, "101%"],
  [parseMoney, "five"],
  [parseInventoryPlace, "s3://reports/eu"],
  [parseInventoryPlace, "eu=s3://reports"],
])("%# %j is refused, and the message begins with it", (parse, text) => {
  expect(() => parse(text)).toThrow(
    expect.objectContaining({ code: "USAGE", message: expect.stringMatching(/^\S* /) }),
  );
  expect(() => parse(text)).toThrow(text);
});

test("a duration is printed as an option spells it", () => {
  expect([1_000, 3_600_000, 90_000, 172_800_000].map(durationText)).toEqual(["1s", "1h", "90s", "2d"]);
});
