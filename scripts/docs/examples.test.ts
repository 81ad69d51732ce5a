/**
 * The code of README and docs is what runs: a block below `<!-- file: … -->` is text of that file, which a test of e2e
 * runs. Other JavaScript compiles against the packages as they are. The files that pages name exist.
 */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const PAGES = execFileSync("git", ["ls-files", "README.md", "CONTRIBUTING.md", "docs/*.md", "*/README.md"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .trim()
  .split("\n");
/** The first words of a comment that begins another file within a block. */
const FILE_COMMENT = /^\/\/ (?:vite\.config\.js|in the page)\n/m;
/** The names that examples use from the app around them. */
const AROUND = `import type { IncomingMessage, ServerResponse } from "node:http";
import type { ClientConfig } from "@agarose/sw";
declare global {
  const image: HTMLImageElement, video: HTMLVideoElement;
  const pops: NonNullable<ClientConfig["pops"]>, regions: NonNullable<ClientConfig["regions"]>;
  const publicKeys: readonly string[];
  function show(bytes: number): void;
  function report(line: { key: string; ms: number }): void;
  const app: { get(path: RegExp, handle: (request: IncomingMessage, response: ServerResponse) => unknown): void };
  const pop: { fetch(request: Request): Promise<Response> };
  function importScripts(url: string): void;
  function defineNuxtPlugin(run: () => void): void;
  function defineNuxtConfig(config: object): void;
  const agarose: typeof import("@agarose/sw/sw").agarose;
  const register: typeof import("@agarose/sw").register;
  type RouteMatcher = (request: { url: URL; sameOrigin: boolean }) => boolean;
  type RouteEvent = { readonly request: Request; readonly event: { waitUntil(work: Promise<unknown>): void } };
  function registerRoute(matcher: RouteMatcher, handler: (options: RouteEvent) => Promise<Response>): void;
  // Unlike the library's own, it says that the page has one.
  interface ParentNode { querySelector(name: "video"): HTMLVideoElement }
  interface ImportMeta { readonly env: { readonly BASE_URL: string } }
}
`;

interface Example {
  readonly page: string;
  readonly code: string;
}

/** A fenced block, perhaps with the title of a tab, and the file that it is taken from, if it is said. */
const BLOCK = /(?:^<!-- file: (\S+) -->\n+)?^```(\w+)(?: \[[^\]\n]+\])?\n(.*?)^```$/gms;

const examples = PAGES.flatMap((page): Example[] => {
  const text = readFileSync(join(ROOT, page), "utf8");
  const blocks = [...text.matchAll(BLOCK)].flatMap(([, file, language = "", code = ""]) =>
    !file && ["js", "ts"].includes(language) ? [code] : [],
  );
  return blocks.flatMap((code) => code.split(FILE_COMMENT)).flatMap((code) => (code.trim() ? [{ page, code }] : []));
});

test("every example compiles", async () => {
  expect(examples.length).toBeGreaterThan(20);
  const folder = await mkdtemp(join(tmpdir(), "agarose-examples-"));
  try {
    await symlink(join(ROOT, "node_modules"), join(folder, "node_modules"));
    await writeFile(join(folder, "around.ts"), AROUND);
    // Of recipes for libraries that are not installed here.
    const absent = ["@uppy/core", "@aws-sdk/s3-presigned-post"].map((name) => `declare module "${name}";\n`);
    await writeFile(join(folder, "absent.d.ts"), absent);
    const named = examples.map(({ page, code }, i) => [`${page.replaceAll(/\W/g, "-")}-${i}.ts`, code] as const);
    // Of a page that has no bundler: the files of `agarose init` instead of packages.
    const imports = (code: string): string =>
      code.replaceAll('"/agarose.js"', '"@agarose/sw"').replaceAll('"/agarose-devtools.js"', '"@agarose/sw/devtools"');
    for (const [name, code] of named) await writeFile(join(folder, name), `${imports(code)}\nexport {};\n`);
    const compilerOptions = {
      lib: ["ES2024", "DOM", "DOM.AsyncIterable"],
      types: ["node", join(ROOT, "packages/sw/virtual.d.ts")],
      typeRoots: [join(ROOT, "node_modules/@types")],
      noUnusedLocals: false,
      // JavaScript has no types to write.
      noImplicitAny: false,
    };
    const config = { extends: join(ROOT, "tsconfig.base.json"), compilerOptions, include: ["*.ts"] };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify(config));
    await writeFile(join(folder, "package.json"), '{ "type": "module" }');
    const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
    const problems = await promisify(execFile)(process.execPath, [tsc, "--noEmit", "-p", folder]).then(
      () => "",
      ({ stdout }: { stdout: string }) => stdout,
    );
    expect(problems).toBe("");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

test("every block that names its file is text of it", () => {
  const blocks = PAGES.flatMap((page) =>
    [...readFileSync(join(ROOT, page), "utf8").matchAll(BLOCK)].flatMap(([, file, , code = ""]) =>
      file ? [{ page, file, code }] : [],
    ),
  );
  expect(blocks.length).toBeGreaterThan(0);
  const others = blocks.filter(({ file, code }) => !readFileSync(join(ROOT, file), "utf8").includes(code));
  expect(others).toEqual([]);
});

test("every file that a page names exists", () => {
  const missing = PAGES.flatMap((page) => {
    const text = readFileSync(join(ROOT, page), "utf8");
    const named = [...text.matchAll(/`((?:packages|docs|scripts|e2e|demo)\/[\w./-]+)`/g)].map(([, path = ""]) => path);
    return named.filter((path) => !existsSync(join(ROOT, path))).map((path) => `${page}: ${path}`);
  });
  expect(missing).toEqual([]);
});
