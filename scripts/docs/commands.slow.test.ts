/** The commands of READMEs and docs, run as they are written, in a copy of the tree and against the local world. */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test, type TestContext } from "vitest";
import { dependenciesInstalled } from "../set-up.mjs";
import { blocksOf, OUTSIDE, withoutFigures } from "./blocks.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NODE_TOOLS = `${dirname(process.execPath)}:${join(ROOT, "node_modules/.bin")}:${process.env.PATH}`;
const UNTIL_CTRL_C = "runs until Ctrl-C";
/** How long a reader looks at the address before Ctrl-C. */
const READER_MS = 3_000;
const NOT_RUN = /^not run: \S/;

const tracked = (patterns: readonly string[]): string[] =>
  execFileSync("git", ["ls-files", "-co", "--exclude-standard", ...patterns], { cwd: ROOT, encoding: "utf8" })
    .split("\n")
    .filter((path) => path !== "");
const blocks = tracked(["README.md", "*/README.md", "docs/*.md"]).flatMap((page) =>
  blocksOf(page, readFileSync(join(ROOT, page), "utf8")),
);
const runnable = blocks.filter(({ comment }) => comment === undefined);
const pages = [...new Set(runnable.map(({ page }) => page))];
const untilCtrlC = new Set(blocks.filter(({ comment }) => comment === UNTIL_CTRL_C).map(({ code }) => code.trim()));

/** The shell's action after a block in place of the reader's browser, by a word of the block. */
const READER: readonly (readonly [word: string, check: string])[] = [
  [
    "--key photos/first.jpg",
    `curl -sf http://localhost:8080/ | cmp - my-page/index.html
for file in agarose.js 'agarose-sw.js?config=/agarose.json' agarose.json; do
  curl -sfo /dev/null "http://localhost:8080/$file"
done
curl -sf http://localhost:8080/ec/photos/first.jpg | cmp - demo/samples/photos/bridge.jpg`,
  ],
];

/** Returns a copy of the tree, which ends with the test. */
function copyOfTree({ onTestFinished }: TestContext): string {
  if (!dependenciesInstalled()) {
    throw new Error("run npm ci first: a copy links to node_modules, so npm start in it would install into yours");
  }
  const copy = mkdtempSync(join(tmpdir(), "agarose-docs-"));
  onTestFinished(() => rmSync(copy, { recursive: true, force: true }));
  for (const path of tracked([])) {
    mkdirSync(join(copy, dirname(path)), { recursive: true });
    cpSync(join(ROOT, path), join(copy, path), { recursive: true });
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  return copy;
}

test("a reader's check belongs to a block of some page", () => {
  const unused = READER.filter(([word]) => !runnable.some(({ code }) => code.includes(word)));
  expect(unused).toEqual([]);
});

test("every sh block is run, or says why not", () => {
  const unexplained = blocks.filter(
    ({ comment }) => comment !== undefined && ![UNTIL_CTRL_C, OUTSIDE].includes(comment) && !NOT_RUN.test(comment),
  );
  expect(unexplained).toEqual([]);
  const outside = blocks.filter(({ comment }) => comment === OUTSIDE);
  expect([...new Set(outside.map(({ page }) => page))], "what e2e/packages/start.slow.spec.ts runs").toEqual([
    "docs/start.md",
  ]);
  expect(pages).toContain("docs/start.md");
});

// A page starts a world and a dozen processes, which take their turns with all other tests.
test.concurrent.for(pages)("the commands of %s run as written", { timeout: 600_000 }, async (page, context) => {
  const ofPage = runnable.filter((block) => block.page === page);
  const commands = ofPage.map(({ code }) => code);
  // Job control, so that `kill %1` means the same as in a terminal. Whatever is left ends with the shell.
  const steps = commands.flatMap((block) => [
    block,
    ...READER.filter(([word]) => block.includes(word)).map(([, check]) => check),
  ]);
  const script = ["set -emuo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", ...steps].join("\n");
  // A package's README is read in its folder, every other page in the root.
  const { code, output } = await bash(context, script, { folder: page.startsWith("packages/") ? dirname(page) : "." });
  expect(code, output).toBe(0);
  const printed = withoutFigures(output);
  const absent = ofPage.flatMap(({ shown = "" }) => withoutFigures(shown).filter((line) => !printed.includes(line)));
  expect(absent, output).toEqual([]);
});

test.concurrent.for([...untilCtrlC])("%s prints an address and ends with Ctrl-C", async (command, context) => {
  const { code, output } = await bash(context, command, { until: /http:\/\/(localhost|127\.0\.0\.1):\d+/ });
  expect(output).toMatch(/http:\/\//);
  expect([0, 130], output).toContain(code);
});

interface BashOptions {
  /** Of the tree. Default: its root. */
  readonly folder?: string;
  /** Sends SIGINT after this is printed. */
  readonly until?: RegExp;
}

/** Runs `script` in a copy of the tree. */
function bash(
  context: TestContext,
  script: string,
  { folder = ".", until }: BashOptions = {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn("bash", ["-c", script], {
    cwd: join(copyOfTree(context), folder),
    env: { ...process.env, PATH: NODE_TOOLS },
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own, which Ctrl-C reaches as a whole.
    detached: true,
  });
  let output = "";
  let interrupted = false;
  const read = (part: Buffer): void => {
    output += String(part);
    if (interrupted || !until?.test(output)) return;
    interrupted = true;
    setTimeout(() => process.kill(-child.pid!, "SIGINT"), READER_MS);
  };
  child.stdout.on("data", read);
  child.stderr.on("data", read);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    // Not "exit", which may come before the last output is read. A world that is left running ends with the shell.
    child.once("close", (code, signal) => resolve({ code: signal === "SIGINT" ? 130 : code, output }));
  });
}
