/**
 * `npm test`: everything, in the order in which a mistake is cheapest to find. Its last line is `N passed, N failed`.
 *
 * Each step counts its own tests; a step that ends badly without a count of failures counts as one.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { environment, root, setUp } from "./set-up.mjs";
import { ensureVersitygw } from "./versitygw.mjs";

const node = setUp();
const env = environment(node);
const reports = join(root, ".cache/test");
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });

const steps = [
  { name: "lint", run: () => check("npm", ["run", "--silent", "lint"]) },
  { name: "types", run: () => check("npm", ["run", "--silent", "types"]) },
  { name: "versitygw", run: versitygw },
  { name: "unit, workerd and S3", run: vitest },
  { name: "Rust", run: rust },
  { name: "browser", run: playwright },
];
const only = process.argv.slice(2);
const total = { passed: 0, failed: 0, skipped: 0 };
const failures = [];
for (const step of steps) {
  if (only.length > 0 && !only.some((word) => step.name.toLowerCase().includes(word.toLowerCase()))) continue;
  console.log(`\n=== ${step.name}`);
  const started = Date.now();
  const { code, passed, failed, skipped = 0, note = "", names = [] } = await step.run();
  const failedCount = code === 0 ? failed : Math.max(1, failed);
  total.passed += passed;
  total.failed += failedCount;
  total.skipped += skipped;
  if (failedCount > 0) failures.push(step.name, ...names.map((name) => `  ${name}`));
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  console.log(`=== ${step.name}: ${passed} passed, ${failedCount} failed, ${skipped} skipped in ${seconds} s ${note}`);
}
// Once more where it is seen: the output above is thousands of lines.
if (failures.length > 0) console.log(`\nWhat failed:\n${failures.join("\n")}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 ? 1 : 0;

/** A command that counts as one test. */
async function check(command, args) {
  const { code } = await run(command, args);
  return { code, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1 };
}

/** The real S3 server: without Go its tests are skipped, a failed build is a failure. */
async function versitygw() {
  const outcome = await ensureVersitygw();
  if (outcome === "no-go") return { code: 0, passed: 0, failed: 0, skipped: 1, note: "(Go is not installed)" };
  return outcome === "failed" ? { code: 1, passed: 0, failed: 1 } : { code: 0, passed: 1, failed: 0 };
}

async function vitest() {
  const file = join(reports, "vitest.json");
  const { code } = await run("vitest", ["run", "--reporter=default", "--reporter=json", `--outputFile.json=${file}`]);
  const report = readReport(file);
  return {
    code,
    passed: report?.numPassedTests ?? 0,
    failed: report?.numFailedTests ?? 0,
    skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
    names: (report?.testResults ?? []).flatMap(failedTests),
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
  return { code, passed: sum(1), failed: sum(2), skipped: sum(3) };
}

async function playwright() {
  const { ensureBrowser } = await import("./browser.mjs");
  const browser = await ensureBrowser();
  if (!browser) {
    console.error("No Chromium was found or could be installed: set CHROMIUM_PATH to one.");
    return { code: 1, passed: 0, failed: 1 };
  }
  const file = join(reports, "playwright.json");
  const { code } = await run("playwright", ["test", "--config", "e2e/playwright.config.ts"], {
    env: { ...env, CHROMIUM_PATH: browser, PLAYWRIGHT_JSON_OUTPUT_NAME: file },
  });
  const { stats, suites = [] } = readReport(file) ?? {};
  const failed = (stats?.unexpected ?? 0) + (stats?.flaky ?? 0);
  return {
    code,
    passed: stats?.expected ?? 0,
    failed,
    skipped: stats?.skipped ?? 0,
    names: suites.flatMap(failedSpecs),
  };
}

/** Of a suite of Playwright's report and those within it. */
function failedSpecs({ file, specs = [], suites = [] }) {
  const failed = specs.filter(({ ok }) => !ok).map(({ title }) => `${file}: ${title}`);
  return [...failed, ...suites.flatMap(failedSpecs)];
}

/** Runs a command in the project with its output shown, and kept when `capture` is set. */
function run(command, args, { capture = false, ...options } = {}) {
  const stdio = ["ignore", capture ? "pipe" : "inherit", "inherit"];
  const child = spawn(command, args, { cwd: root, env, stdio, ...options });
  let output = "";
  child.stdout?.on("data", (part) => {
    output += part;
    process.stdout.write(part);
  });
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
