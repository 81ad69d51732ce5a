import { expect, test } from "vitest";
import { headersOf } from "./header-rules.ts";

const RULES = [
  { keys: "app/assets/**", headers: { "cache-control": "immutable" } },
  { keys: "*.html", headers: { "cache-control": "no-cache" } },
  { keys: "app/assets/list.json", headers: { "cache-control": "max-age=5", expires: "0" } },
];

test.each([
  ["app/assets/a.js", { "cache-control": "immutable" }],
  ["app/assets/deep/er/b.js", { "cache-control": "immutable" }],
  ["other/app/assets/a.js", {}],
  ["app/assets/index.html", { "cache-control": "no-cache" }],
  ["deep/index.html", { "cache-control": "no-cache" }],
  ["index.html.br", {}],
  ["app/assets/list.json", { "cache-control": "max-age=5", expires: "0" }],
])("%s has the headers of the rules that match it, of which the last decides", (key, expected) => {
  expect(headersOf(key, RULES)).toEqual(expected);
});

test("headers that are given override those of the rules", () => {
  expect(headersOf("app/assets/list.json", RULES, { "cache-control": "private" })).toEqual({
    "cache-control": "private",
    expires: "0",
  });
  expect(headersOf("a", [], { expires: "1" })).toEqual({ expires: "1" });
});
