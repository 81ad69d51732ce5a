/**
 * House rules that no linter of ours covers: the width of comments, and what a package says of itself.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { PACKAGES } from "./release/packages.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COLUMNS_MAX = 120;

/** Files of the repository that exist, those that are not committed yet included. */
function tracked(...paths: readonly string[]): string[] {
  return execFileSync("git", ["ls-files", "-co", "--exclude-standard", ...paths], { cwd: ROOT })
    .toString()
    .split("\n")
    .filter((path) => path !== "" && existsSync(join(ROOT, path)));
}

const sources = tracked("packages").filter((path) => /\.(ts|rs)$/.test(path));

test("every changeset names packages that exist", () => {
  const names = PACKAGES.map((name) => {
    return (JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8")) as { name: string }).name;
  });
  const changed = tracked(".changeset/*.md").flatMap((path) =>
    [...readFileSync(join(ROOT, path), "utf8").matchAll(/^"([^"]+)": (?:major|minor|patch)$/gm)].map(
      ([, name]) => name!,
    ),
  );
  expect(changed.filter((name) => !names.includes(name))).toEqual([]);
});

test("all published packages have one version, so a release moves them together", () => {
  const manifests = PACKAGES.map(
    (name) => JSON.parse(readFileSync(join(ROOT, "packages", name, "package.json"), "utf8")) as Record<string, string>,
  );
  const config = JSON.parse(readFileSync(join(ROOT, ".changeset/config.json"), "utf8")) as { fixed: string[][] };
  const together = config.fixed.filter((group) =>
    manifests.every(({ name }) => group.some((one) => one === name || matchesScope(one, name!))),
  );
  expect(together).toHaveLength(1);
  expect(new Set(manifests.map(({ version }) => version)).size).toBe(1);
});

/** Whether a pattern such as `@agarose/*` covers a name. */
function matchesScope(pattern: string, name: string): boolean {
  return pattern.endsWith("/*") && name.startsWith(pattern.slice(0, -1));
}

test("the index of the documents names every page, and the sidebar of their site every one that it shows", () => {
  const pages = tracked("docs/*/*.md").map((path) => path.slice("docs/".length, -".md".length));
  expect(pages.length).toBeGreaterThan(30);
  const index = readFileSync(join(ROOT, "docs/README.md"), "utf8");
  const sidebar = readFileSync(join(ROOT, "docs/.vitepress/config.ts"), "utf8");
  const isShown = (page: string): boolean => !page.startsWith("internals/") && page !== "reference/format";
  const isNamed = (page: string): boolean =>
    index.includes(`(${page}.md)`) && (!isShown(page) || sidebar.includes(`"${basename(page)}"`));
  expect(pages.filter((page) => !isNamed(page))).toEqual([]);
});

test("the tour names files that exist", () => {
  const tour = readFileSync(join(ROOT, "docs/internals/tour.md"), "utf8");
  const named = [...tour.matchAll(/`([a-z-]+(?:\/[a-z-]+)+)`/g)].map(([, name]) => name!);
  const files = named.filter((name) => !name.startsWith("packages/"));
  expect(files.length).toBeGreaterThan(30);
  const missing = files.filter((name) => !sources.some((path) => path.endsWith(`/src/${name}.ts`)));
  expect(missing).toEqual([]);
});

test("every declaration that a file exports has a doc comment", () => {
  const files = sources.filter((path) => /^packages\/[^/]+\/(src|js)\/.*(?<!\.(?:test|contract|d))\.ts$/.test(path));
  const declarations = files.flatMap((path) => exportedDeclarations(path));
  expect(declarations.length).toBeGreaterThan(1_000);
  expect(declarations.filter(({ hasComment }) => !hasComment).map(({ at }) => at)).toEqual([]);
});

test("no text of the storage library names a flag of the command line", () => {
  // The reference of the configuration is made of the descriptions in its schema.
  const isText = (path: string): boolean => !/(\.test|config-schema)\.ts$/.test(path);
  const lines = tracked("packages/storage/src").filter(isText).flatMap(linesOf);
  expect(lines.length).toBeGreaterThan(10_000);
  const named = lines.filter((line) => !isComment(line) && /["'`\s]--[a-z]/.test(line.line));
  expect(named.map(({ at }) => at)).toEqual([]);
});

describe.each(PACKAGES)("packages/%s", (name) => {
  const comments = sources.filter((path) => path.startsWith(`packages/${name}/`)).flatMap(commentLines);

  test(`keeps comments within ${COLUMNS_MAX} columns`, () => {
    expect(comments.length).toBeGreaterThan(0);
    expect(comments.filter(({ line }) => line.length > COLUMNS_MAX).map(({ at }) => at)).toEqual([]);
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

describe("demo, e2e, scripts and wrangler.toml", () => {
  const paths = [...tracked("demo", "e2e", "scripts").filter((path) => /\.(ts|js|mjs)$/.test(path)), "wrangler.toml"];
  const comments = paths.flatMap(commentLines);

  test(`keep comments within ${COLUMNS_MAX} columns`, () => {
    expect(comments.length).toBeGreaterThan(1_000);
    expect(comments.filter(({ line }) => line.length > COLUMNS_MAX).map(({ at }) => at)).toEqual([]);
  });
});

interface SourceLine {
  /** File and line number. */
  readonly at: string;
  readonly line: string;
}

/** Declarations with `export` at the start of a line, and whether a doc comment ends just before them. */
function exportedDeclarations(path: string): { at: string; hasComment: boolean }[] {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  return lines.flatMap((line, i) => {
    if (
      !/^export (?:default )?(?:abstract )?(?:async )?(?:function|class|const|let|interface|enum|type \w)/.test(line)
    ) {
      return [];
    }
    return [{ at: `${path}:${i + 1}`, hasComment: /\*\/\s*$/.test(lines[i - 1] ?? "") }];
  });
}

/** Whole-line comments; a comment behind code is as long as Prettier lets its line be. */
function commentLines(path: string): SourceLine[] {
  return linesOf(path).filter((line) => isComment(line) && basename(path) !== "generated.ts");
}

function linesOf(path: string): SourceLine[] {
  const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
  return lines.map((line, i) => ({ at: `${path}:${i + 1}`, line }));
}

function isComment({ line }: SourceLine): boolean {
  return /^\s*(\/\/|\/?\*|#)/.test(line);
}
