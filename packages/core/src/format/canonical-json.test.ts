import * as fc from "fast-check";
import { expect, test } from "vitest";
import { canonicalJson } from "./canonical-json.ts";

test("sorts fields at every depth, and writes no white space", () => {
  expect(canonicalJson({ b: [1, { d: null, c: "x" }], a: true })).toBe('{"a":true,"b":[1,{"c":"x","d":null}]}');
});

test("sorts by UTF-16 code units, as the example of RFC 8785, section 3.2.3, does", () => {
  const value = { "\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\u{1f600}": 5, "\u0080": 6, "\u00f6": 7 };
  const names = Object.keys(JSON.parse(canonicalJson(value)) as object);
  expect(canonicalJson(value)).toBe('{"\\r":2,"1":4,"\u0080":6,"ö":7,"€":1,"\u{1f600}":5,"\ufb33":3}');
  expect(names).toHaveLength(7);
});

test("leaves out what is undefined", () => {
  expect(canonicalJson({ a: undefined, b: 1 })).toBe('{"b":1}');
});

test("does not depend on the order of fields, and is undone by JSON.parse (property)", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ unit: "grapheme" }), fc.jsonValue()), (value) => {
      const reversed = Object.fromEntries(Object.entries(value).toReversed());
      const text = canonicalJson(value);
      expect(canonicalJson(reversed)).toBe(text);
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});
