/**
 * House rules that no linter of ours covers: size of rooms, width and words of comments, and what a package says of
 * itself.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { PACKAGES } from "./packages.ts";
import { PLAIN as WORDS } from "./prose/plain-words.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PLAIN = WORDS as [RegExp, string][];
const ROOM_FILES_MAX = 12;
const COLUMNS_MAX = 120;

const sources = execFileSync("git", ["ls-files", "-co", "--exclude-standard", "packages"], { cwd: ROOT })
  .toString()
  .split("\n")
  .filter((path) => /\.(ts|rs)$/.test(path) && existsSync(join(ROOT, path)));

test(`a folder of sources holds at most ${ROOM_FILES_MAX} files, tests not counted`, () => {
  const rooms = new Map<string, number>();
  for (const path of sources) {
    if (!/^packages\/[^/]+\/(src|js)\//.test(path) || /\.(test|contract|d)\.ts$/.test(path)) continue;
    rooms.set(dirname(path), (rooms.get(dirname(path)) ?? 0) + 1);
  }
  expect(rooms.size).toBeGreaterThan(20);
  const full = [...rooms].filter(([, files]) => files > ROOM_FILES_MAX);
  expect(full).toEqual([]);
});

test("the tour names files that exist", () => {
  const tour = readFileSync(join(ROOT, "docs/internals/tour.md"), "utf8");
  const named = [...tour.matchAll(/`([a-z-]+(?:\/[a-z-]+)+)`/g)].map(([, name]) => name!);
  const files = named.filter((name) => !name.startsWith("packages/"));
  expect(files.length).toBeGreaterThan(30);
  const missing = files.filter((name) => !sources.some((path) => path.endsWith(`/src/${name}.ts`)));
  expect(missing).toEqual([]);
});

describe.each(PACKAGES)("packages/%s", (name) => {
  const comments = sources.filter((path) => path.startsWith(`packages/${name}/`)).flatMap(commentLines);

  test(`keeps comments within ${COLUMNS_MAX} columns`, () => {
    expect(comments.length).toBeGreaterThan(0);
    expect(comments.filter(({ line }) => line.length > COLUMNS_MAX).map(({ at }) => at)).toEqual([]);
  });

  test("uses plain words in comments (docs/internals/writing.md)", () => {
    const refused = comments.flatMap(({ at, line }) =>
      PLAIN.filter(([pattern]) => line.search(pattern) >= 0).map(([pattern, better]) => `${at} ${pattern}: ${better}`),
    );
    expect(refused).toEqual([]);
  });

  test("has a README, a licence, and says where it comes from and which Node it needs", () => {
    const read = (path: string): string => readFileSync(join(ROOT, "packages", name, path), "utf8");
    const manifest = JSON.parse(read("package.json")) as Record<string, unknown>;
    expect(manifest).toMatchObject({
      license: "MIT",
      description: expect.stringMatching(/.{20}/),
      keywords: expect.arrayContaining([expect.any(String)]),
      homepage: expect.stringMatching(/^https:\/\//),
      bugs: expect.anything(),
      repository: {
        type: "git",
        url: "git+https://github.com/agarose/agarose.git",
        directory: `packages/${name}`,
      },
    });
    expect(read("README.md").length).toBeGreaterThan(200);
  });
});

interface CommentLine {
  /** File and line number. */
  readonly at: string;
  readonly line: string;
}

/** Whole-line comments; a comment behind code is as long as Prettier lets its line be. */
function commentLines(path: string): CommentLine[] {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  return lines
    .map((line, i) => ({ at: `${path}:${i + 1}`, line }))
    .filter(({ line }) => /^\s*(\/\/|\/?\*)/.test(line) && basename(path) !== "generated.ts");
}
