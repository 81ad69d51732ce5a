/**
 * `npm test [-- [--full] STEP…]`, in the order in which a mistake is cheapest to find. Steps of a group run side by
 * side. The last line is `N passed, N failed`.
 *
 * Without `--full` this is the fast tier, for the time before a commit: it omits every test file with `.slow.` in
 * its name, the PoP on Node, and the documentation site. `.ci/run` runs everything.
 *
 * Each step counts its own tests; a step that fails without a count of failures counts as one. A full run takes an hour
 * on a shared machine, so it runs files that failed once more, alone: a test that passes then is named as flaky.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { environment, root, setUp } from "./set-up.mjs";
import { ensureVersitygw } from "./versitygw.mjs";

const node = setUp();
const env = environment(node);
const reports = join(root, "dist/test");
const full = process.argv.includes("--full");
const only = process.argv
  .slice(2)
  .filter((word) => word !== "--full")
  .map((word) => word.toLowerCase());
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });

/** Browser tests wait for a third of their time, so what only computes runs beside them. Unit tests wait for less. */
const groups = [
  [
    ...["lint:code", "lint:format", "lint:prose -- --quiet", "types"].map((script) => ({
      name: script.split(" ", 1)[0],
      run: () => check("npm", ["run", "--silent", ...script.split(" ")]),
    })),
    // The unit tests need it.
    { name: "versitygw", run: versitygw },
  ],
  [{ name: "unit, workerd and S3", run: vitest }],
  [
    { name: "browser", run: playwright },
    { name: "Rust", run: rust },
    ...(full ? [{ name: "documentation site", run: () => check("npm", ["run", "--silent", "docs:build"]) }] : []),
  ],
];
const DETAIL_CHARACTERS = 20_000;
/** More files than these do not fail because a machine was busy for a moment. */
const RERUN_FILES_MAX = 8;
const total = { passed: 0, failed: 0, skipped: 0 };
const failures = [];
/** The failures that a step printed. */
const details = [];
/** `{ file, ms }` of every test file that reports its time. */
const files = [];
/** Steps whose failures lie in files that can be run again. */
const suspects = [];
const flaky = [];
const isChosen = ({ name }) => only.length === 0 || only.some((word) => name.toLowerCase().includes(word));
// Fetched while the steps before compute.
const chromium = isChosen({ name: "browser" }) ? findChromium() : undefined;
for (const group of groups) await Promise.all(group.filter(isChosen).map(runStep));

if (full) for (const suspect of suspects) await runAgain(suspect);

// Again where it is seen: the output above is thousands of lines.
if (flaky.length > 0) console.log(`\nFlaky, for they failed once and passed alone:\n${flaky.join("\n")}`);
if (failures.length > 0) console.log(`\nWhat failed:\n${failures.join("\n")}`);
for (const detail of details) console.log(`\n${detail}`);
if (files.length > 0) console.log(`\nSlowest files:\n${slowest(10).join("\n")}`);
if (!full) console.log(`\n${leftOut()}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 ? 1 : 0;

/** Runs one step, prints what it captured in one piece, and adds it to the totals. */
async function runStep({ name, run: work }) {
  console.log(`\n=== ${name}`);
  const started = Date.now();
  const outcome = await work();
  const { code, passed, failed, skipped = 0, note = "", names = [], times = [], output = "", detail } = outcome;
  const failedCount = code === 0 ? failed : Math.max(1, failed);
  total.passed += passed;
  total.failed += failedCount;
  total.skipped += skipped;
  files.push(...times);
  if (failedCount > 0) {
    const lines = [name, ...names.map((failure) => `  ${failure}`)];
    failures.push(...lines);
    details.push((detail ?? output).slice(-DETAIL_CHARACTERS));
    const failedFiles = [...new Set(names.map((failure) => failure.split(": ", 1)[0]))];
    if (failedFiles.length > 0 && failedFiles.length <= RERUN_FILES_MAX) {
      suspects.push({ name, run: work, lines, failedCount, failedFiles });
    }
  }
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  process.stdout.write(output);
  console.log(`=== ${name}: ${passed} passed, ${failedCount} failed, ${skipped} skipped in ${seconds} s ${note}`);
}

/** Runs the files of a step that failed once more, one at a time. */
async function runAgain({ name, run: work, lines, failedCount, failedFiles }) {
  console.log(`\n=== ${name}, again: ${failedFiles.join(", ")}`);
  const { code, failed } = await work(failedFiles);
  if (code !== 0 || failed > 0) return;
  total.failed -= failedCount;
  total.passed += failedCount;
  failures.splice(failures.indexOf(lines[0]), lines.length);
  flaky.push(...lines);
}

/** The line that tells which tests the fast tier has not run. */
function leftOut() {
  const { stdout } = spawnSync("git", ["ls-files", "*.slow.*"], {
    cwd: root,
    encoding: "utf8",
  });
  const count = stdout.split("\n").filter(Boolean).length;
  return `Fast tier: ${count} slow files, the PoP on Node and the documentation site are left to .ci/run`;
}

function slowest(count) {
  const bySeconds = files.toSorted((a, b) => b.ms - a.ms).slice(0, count);
  return bySeconds.map(({ file, ms }) => `${(ms / 1000).toFixed(1).padStart(7)} s  ${file}`);
}

/** A command that counts as one test. */
async function check(command, args) {
  const { code, output } = await run(command, args, { capture: true });
  return { code, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, output };
}

/** The real S3 server: without Go its tests are skipped, a failed build is a failure. */
async function versitygw() {
  const outcome = await ensureVersitygw();
  if (outcome === "no-go") return { code: 0, passed: 0, failed: 0, skipped: 1, note: "(Go is not installed)" };
  return outcome === "failed" ? { code: 1, passed: 0, failed: 1 } : { code: 0, passed: 1, failed: 0 };
}

async function vitest(again = []) {
  const file = join(reports, again.length > 0 ? "vitest-again.json" : "vitest.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
  const tier = full ? [] : ["--project", "unit", "--exclude", "**/*.slow.*"];
  const alone = again.length > 0 ? ["--maxWorkers=1"] : [];
  const { code, output } = await run("vitest", ["run", ...reporters, ...tier, ...alone, ...again], { tee: true });
  const report = readReport(file);
  return {
    code,
    passed: report?.numPassedTests ?? 0,
    failed: report?.numFailedTests ?? 0,
    detail: output.slice(Math.max(0, output.search(/Failed (Tests|Suites) \d/))),
    skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
    names: (report?.testResults ?? []).flatMap(failedTests),
    times: (report?.testResults ?? []).map(({ name, startTime, endTime }) => ({
      file: name.slice(root.length + 1),
      ms: endTime - startTime,
    })),
  };
}

/** Of one file of Vitest's report: its failed tests, or the file itself where it could not be run. */
function failedTests({ name, status, message, assertionResults }) {
  const file = name.slice(root.length + 1);
  const tests = assertionResults.filter((test) => test.status === "failed");
  if (tests.length === 0) return status === "failed" ? [`${file}: ${message.split("\n", 1)[0]}`] : [];
  return tests.map(({ fullName, failureMessages }) => `${file}: ${fullName}: ${failureMessages[0]?.split("\n", 1)[0]}`);
}

async function rust() {
  if (spawnSync("cargo", ["--version"], { env }).status !== 0) {
    const note = "(Rust is not installed: the committed WASM is tested from TypeScript only)";
    return { code: 0, passed: 0, failed: 0, skipped: 1, note };
  }
  const manifest = join(root, "packages/ec-wasm/Cargo.toml");
  const { code, output } = await run("cargo", ["test", "--quiet", "--manifest-path", manifest], { capture: true });
  const counts = [...output.matchAll(/(\d+) passed; (\d+) failed; (\d+) ignored/g)];
  const sum = (index) => counts.reduce((count, match) => count + Number(match[index]), 0);
  return { code, passed: sum(1), failed: sum(2), skipped: sum(3), output };
}

async function findChromium() {
  const { ensureBrowser } = await import("./browser.mjs");
  return ensureBrowser().catch((error) => console.error(String(error)));
}

async function playwright(again = []) {
  const browser = await chromium;
  if (!browser) {
    console.error("No Chromium was found or could be installed: set CHROMIUM_PATH to one.");
    return { code: 1, passed: 0, failed: 1 };
  }
  const file = join(reports, again.length > 0 ? "playwright-again.json" : "playwright.json");
  const alone = again.length > 0 ? ["--workers=1"] : [];
  const { code } = await run("playwright", ["test", "--config", "e2e/playwright.config.ts", ...alone, ...again], {
    env: { ...env, CHROMIUM_PATH: browser, PLAYWRIGHT_JSON_OUTPUT_NAME: file, TEST_TIER: full ? "full" : "fast" },
  });
  const { stats, suites = [] } = readReport(file) ?? {};
  const failed = (stats?.unexpected ?? 0) + (stats?.flaky ?? 0);
  return {
    code,
    passed: stats?.expected ?? 0,
    failed,
    skipped: stats?.skipped ?? 0,
    names: suites.flatMap(failedSpecs),
    times: suites.map((suite) => ({ file: `e2e/${suite.file}`, ms: durationMs(suite) })),
  };
}

/** Of a suite and those within it: the time of all tests, set-up of fixtures included. */
function durationMs({ specs = [], suites = [] }) {
  const results = specs.flatMap(({ tests }) => tests).flatMap((test) => test.results);
  return [...results.map(({ duration }) => duration), ...suites.map(durationMs)].reduce((sum, ms) => sum + ms, 0);
}

/** Of a suite of Playwright's report and those within it. */
function failedSpecs({ file, specs = [], suites = [] }) {
  const failed = specs.filter(({ ok }) => !ok).map(({ title }) => `${file}: ${title}`);
  return [...failed, ...suites.flatMap(failedSpecs)];
}

/** Runs a command in the project, with its output shown, or returned with `capture`, or both with `tee`. */
function run(command, args, { capture = false, tee = false, ...options } = {}) {
  const out = capture || tee ? "pipe" : "inherit";
  const stdio = ["ignore", out, out];
  const child = spawn(command, args, { cwd: root, env, stdio, ...options });
  let output = "";
  const takeFrom = (stream, shown) => {
    stream?.setEncoding("utf8").on("data", (part) => {
      output += part;
      if (tee) shown.write(part);
    });
  };
  takeFrom(child.stdout, process.stdout);
  takeFrom(child.stderr, process.stderr);
  return new Promise((resolve) => {
    child.once("error", (error) => resolve({ code: 1, output: String(error) }));
    child.once("close", (code) => resolve({ code: code ?? 1, output }));
  });
}

function readReport(file) {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return undefined;
  }
}
