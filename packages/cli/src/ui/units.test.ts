import { expect, test } from "vitest";
import { parseAddress, parseCode, parseCount, parseHost, parseNumber, parsePort } from "./units.ts";

test.each([
  [parseCount({ max: 64 }), "64", 64],
  [parseNumber(), "0.25", 0.25],
  [parsePort, "0", 0],
  [parseCode, "9+3", { k: 9, m: 3 }],
  [parseCode, "auto", "auto"],
  [parseAddress, ":80", { host: "::", port: 80 }],
  [parseHost, "S3.example.com", "s3.example.com"],
])("%# %s is read", (parse, text, value) => expect(parse(text)).toEqual(value));

test.each([
  [parseCount({ min: 1 }), "0"],
  [parseCount(), "1e3"],
  [parseNumber({ max: 1 }), "2"],
  [parseNumber(), " "],
  [parsePort, "65536"],
  [parseCode, "0+3"],
  [parseAddress, "host:99999"],
  [parseHost, "s3.example.com:9000"],
  [parseHost, "https://s3.example.com"],
  [parseHost, ".s3.example.com"],
])("%# %j is refused, and the message begins with it", (parse, text) => {
  expect(() => parse(text)).toThrow(
    expect.objectContaining({ code: "USAGE", message: expect.stringMatching(/^\S* /) }),
  );
  expect(() => parse(text)).toThrow(text);
});
