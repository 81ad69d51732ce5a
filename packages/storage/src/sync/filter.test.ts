import { expect, test } from "vitest";
import { Filter } from "./filter.ts";

const PATHS = [
  "a.js",
  "a.js.map",
  "deep/b.js",
  "deep/b.js.map",
  "deep/er/c.txt",
  ".git/config",
  "deep/.env",
  "#x",
  "!y",
];

const taken = (patterns: { include?: string[]; exclude?: string[] }): string[] => {
  const filter = new Filter({ include: [], exclude: [], ...patterns });
  return PATHS.filter((path) => filter.takes(path));
};
const without = (...paths: string[]): string[] => PATHS.filter((path) => !paths.includes(path));

test.each([
  ["nothing", {}, PATHS],
  ["a name at any depth", { exclude: ["*.map"] }, without("a.js.map", "deep/b.js.map")],
  ["a path from the folder on", { exclude: ["/*.map"] }, without("a.js.map")],
  ["a folder and all below it", { exclude: ["deep/"] }, PATHS.filter((path) => !path.startsWith("deep/"))],
  ["any number of folders", { exclude: ["deep/**/*.txt"] }, without("deep/er/c.txt")],
  ["dot files", { exclude: [".*"] }, without(".git/config", "deep/.env")],
  ["alternatives", { exclude: ["*.{js,txt}"] }, without("a.js", "deep/b.js", "deep/er/c.txt")],
  ["signs that are comments or negations elsewhere", { exclude: ["#x", "!y"] }, without("#x", "!y")],
  ["inclusions alone", { include: ["*.js"] }, ["a.js", "deep/b.js"]],
  [
    "exceptions",
    { exclude: ["deep", "*.map"], include: ["deep/b.*"] },
    without("a.js.map", "deep/er/c.txt", "deep/.env"),
  ],
])("patterns take %s", (_, patterns, expected) => {
  expect(taken(patterns)).toEqual(expected);
});

test("a folder is not read when nothing below it can be taken", () => {
  const excluded = new Filter({ exclude: ["node_modules"], include: [] });
  expect(excluded.leavesOutFolder("a/node_modules")).toBe(true);
  expect(excluded.leavesOutFolder("a")).toBe(false);
  const excepted = new Filter({ exclude: ["node_modules"], include: ["keep.js"] });
  expect(excepted.leavesOutFolder("a/node_modules")).toBe(false);
});
