/** Policies that fit, that do not, and that are none. */
import { describe, expect, test } from "vitest";
import { checkPolicy } from "./post-policy.ts";

const NOW_MS = Date.UTC(2030, 0, 1);
const expiration = "2030-01-01T00:00:01Z";
const encoded = (policy: unknown): string => Buffer.from(JSON.stringify(policy)).toString("base64");
const check = (policy: unknown, fields: Record<string, string> = {}, nowMs = NOW_MS) =>
  checkPolicy(new Map(Object.entries({ policy: encoded(policy), ...fields })), nowMs);

describe("a policy", () => {
  test.each<[string, unknown[], Record<string, string>]>([
    ["eq", [["eq", "$key", "a/b"]], { key: "a/b" }],
    ["an object", [{ key: "a/b" }], { key: "a/b" }],
    ["starts-with", [["starts-with", "$key", "a/"]], { key: "a/b" }],
    ["anything", [["starts-with", "$key", ""]], { key: "a/b" }],
    ["names in any case", [["StArTs-WiTh", "$KeY", "a"]], { key: "a/b" }],
    ["a list of types", [["starts-with", "$Content-Type", "image/"]], { "content-type": "image/png, image/gif" }],
    ["a field that says nothing", [], { "x-ignore-me": "1", "x-amz-signature": "0" }],
    ["two conditions on a field", [["starts-with", "$key", "a"], { key: "ab" }], { key: "ab" }],
  ])("fits: %s", (_what, conditions, fields) => {
    expect(check({ expiration, conditions }, fields)).toEqual({ min: 0, max: Number.POSITIVE_INFINITY });
  });

  test.each<[string, unknown[], Record<string, string>]>([
    ["another value", [["eq", "$key", "a/b"]], { key: "a/B" }],
    ["another beginning", [["starts-with", "$key", "a/"]], { key: "b/a/" }],
    ["a space before it", [["starts-with", "$key", "a/"]], { key: " a/" }],
    ["a field that is not there", [{ key: "a" }], {}],
    ["a field that no condition names", [{ key: "a" }], { key: "a", acl: "private" }],
    ["one type of a list", [["starts-with", "$Content-Type", "image/"]], { "content-type": "image/png,text/html" }],
    ["one of two conditions", [["starts-with", "$key", "a"], { key: "ab" }], { key: "ac" }],
  ])("denies: %s", (_what, conditions, fields) => {
    expect(() => check({ expiration, conditions }, fields)).toThrow(expect.objectContaining({ code: "AccessDenied" }));
  });

  test("allows a file as long as all its ranges do", () => {
    const conditions = [
      ["content-length-range", 1, "100"],
      ["content-length-range", 10, 1000],
    ];
    expect(check({ expiration, conditions })).toEqual({ min: 10, max: 100 });
  });

  test("ends at its expiration", () => {
    expect(() => check({ expiration, conditions: [] }, {}, NOW_MS + 999)).not.toThrow();
    expect(() => check({ expiration, conditions: [] }, {}, NOW_MS + 1000)).toThrow(
      expect.objectContaining({ code: "AccessDenied", message: expect.stringContaining("expired") }),
    );
  });

  test.each<[string, unknown]>([
    ["null", null],
    ["no expiration", { conditions: [] }],
    ["a name in another case", { EXPIRATION: expiration, conditions: [] }],
    ["a date without a zone", { expiration: "2030-01-01T00:00:01", conditions: [] }],
    ["no date", { expiration: "2030-13-01T00:00:01Z", conditions: [] }],
    ["no conditions", { expiration }],
    ...[
      {},
      { key: "a", acl: "b" },
      { key: 1 },
      ["eq", "$key"],
      ["eq", "key", "a"],
      ["constructor", "$key", "a"],
      ["content-length-range", -1, 0],
      ["content-length-range", 0],
      ["content-length-range", 0, 1.5],
      ["content-length-range", 0, "1e3"],
      null,
      7,
    ].map((condition): [string, unknown] => [JSON.stringify(condition), { expiration, conditions: [condition] }]),
  ])("is none: %s", (_what, policy) => {
    expect(() => check(policy, { key: "a" })).toThrow(expect.objectContaining({ code: "InvalidPolicyDocument" }));
  });

  test("is none that is not JSON in base64", () => {
    for (const policy of ["", "{}", encoded("x").slice(1)]) {
      expect(() => check({}, { policy })).toThrow(expect.objectContaining({ code: "InvalidPolicyDocument" }));
    }
  });
});
