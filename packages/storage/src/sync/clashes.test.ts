import { expect, test } from "vitest";
import { clashes } from "./pull.ts";

test("a path that is a folder for others cannot be a file", () => {
  const found = clashes(new Set(["a/b/c", "a/b", "a.txt", "A"]), false);
  expect([...found]).toEqual([["a/b", "a/b/c"]]);
});

test("where case is folded, the first of equal names is the file", () => {
  const paths = new Set(["README", "readme", "Assets/x", "assets", "stra\u00dfe", "\u00e9", "e\u0301", "other"]);
  expect([...clashes(paths, true)]).toEqual([
    ["readme", "README"],
    ["assets", "Assets/x"],
    ["e\u0301", "\u00e9"],
  ]);
  expect([...clashes(paths, false)]).toEqual([]);
});

test("folders that differ in case alone are one folder, and their files do not clash", () => {
  expect([...clashes(new Set(["A/x", "a/y"]), true)]).toEqual([]);
});
