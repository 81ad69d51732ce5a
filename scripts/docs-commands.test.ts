/** The commands of READMEs and docs, run as they are written, in a copy of the tree and against the local world. */
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const NODE_TOOLS = `${dirname(process.execPath)}:${join(ROOT, "node_modules/.bin")}:${process.env.PATH}`;
const UNTIL_CTRL_C = "runs until Ctrl-C";
/** How long a reader looks at the address before Ctrl-C. */
const READER_MS = 3_000;
const NOT_RUN = /^not run: \S/;

interface Block {
  readonly page: string;
  readonly code: string;
  /** The HTML comment directly before the block, if any. */
  readonly comment: string | undefined;
}

const tracked = (patterns: readonly string[]): string[] =>
  execFileSync("git", ["ls-files", "-co", "--exclude-standard", ...patterns], { cwd: ROOT, encoding: "utf8" })
    .split("\n")
    .filter((path) => path !== "");
const blocks = tracked(["README.md", "*/README.md", "docs/*.md"]).flatMap(blocksOf);
const runnable = blocks.filter(({ comment }) => comment === undefined);
const pages = [...new Set(runnable.map(({ page }) => page))];
const untilCtrlC = new Set(blocks.filter(({ comment }) => comment === UNTIL_CTRL_C).map(({ code }) => code.trim()));

/** What the shell does after a block in place of the reader's browser, by a word of the block. */
const READER: readonly (readonly [word: string, check: string])[] = [
  [
    "npx vite preview",
    `until curl -sfo /dev/null http://localhost:8080/; do sleep 1; done
for file in index.html agarose.js 'agarose-sw.js?config=/agarose.json' agarose.json; do
  curl -sf "http://localhost:8080/$file" | cmp - "my-page/$(cut -d? -f1 <<< "$file")"
done`,
  ],
];

/** Returns a copy of the tree, which ends with the test. */
function copyOfTree(): string {
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
    ({ comment }) => comment !== undefined && comment !== UNTIL_CTRL_C && !NOT_RUN.test(comment),
  );
  expect(unexplained).toEqual([]);
  expect(pages).toContain("docs/start.md");
});

// A page starts a world and a dozen processes, which take their turns with all other tests.
test.each(pages)("the commands of %s run as written", { timeout: 600_000 }, async (page) => {
  const commands = runnable.filter((block) => block.page === page).map(({ code }) => code);
  // Job control, so that `kill %1` means what it means in a terminal. Whatever is left ends with the shell.
  const steps = commands.flatMap((block) => [
    block,
    ...READER.filter(([word]) => block.includes(word)).map(([, check]) => check),
  ]);
  const script = ["set -emuo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT", ...steps].join("\n");
  // A package's README is read in its folder, every other page in the root.
  const { code, output } = await bash(script, { folder: page.startsWith("packages/") ? dirname(page) : "." });
  expect(code, output).toBe(0);
});

test.each([...untilCtrlC])("%s prints an address and ends with Ctrl-C", async (command) => {
  const { code, output } = await bash(command, { until: /http:\/\/(localhost|127\.0\.0\.1):\d+/ });
  expect(output).toMatch(/http:\/\//);
  expect([0, 130], output).toContain(code);
});

function blocksOf(page: string): Block[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  return [...text.matchAll(/(?:<!-- ([^\n]+?) -->\s*\n+)?^```sh\n(.*?)^```$/gms)].map(([, comment, code = ""]) => ({
    page,
    code,
    comment,
  }));
}

interface BashOptions {
  /** Of the tree. Default: its root. */
  readonly folder?: string;
  /** Sends SIGINT after this is printed. */
  readonly until?: RegExp;
}

/** Runs `script` in a copy of the tree. */
function bash(
  script: string,
  { folder = ".", until }: BashOptions = {},
): Promise<{ code: number | null; output: string }> {
  const child = spawn("bash", ["-c", script], {
    cwd: join(copyOfTree(), folder),
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
    child.once("exit", (code, signal) => resolve({ code: signal === "SIGINT" ? 130 : code, output }));
  });
}
