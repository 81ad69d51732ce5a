/**
 * `npm test`: everything, in the order in which a mistake is cheapest to find. Its last line is `N passed, N failed`.
 *
 * Each step counts its own tests; a step that ends badly without a count of failures counts as one.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { environment, root, setUp } from "./set-up.mjs";

const node = setUp();
const env = environment(node);
const reports = join(root, ".cache/test");
rmSync(reports, { recursive: true, force: true });
mkdirSync(reports, { recursive: true });

const steps = [
  { name: "lint", run: () => check("npm", ["run", "--silent", "lint"]) },
  { name: "types", run: () => check("npm", ["run", "--silent", "types"]) },
  { name: "unit, workerd and S3", run: vitest },
  { name: "Rust", run: rust },
  { name: "browser", run: playwright },
];
const only = process.argv.slice(2);
const total = { passed: 0, failed: 0, skipped: 0 };
for (const step of steps) {
  if (only.length > 0 && !only.some((word) => step.name.toLowerCase().includes(word.toLowerCase()))) continue;
  console.log(`\n=== ${step.name}`);
  const started = Date.now();
  const { code, passed, failed, skipped = 0, note = "" } = await step.run();
  const failures = code === 0 ? failed : Math.max(1, failed);
  total.passed += passed;
  total.failed += failures;
  total.skipped += skipped;
  const seconds = ((Date.now() - started) / 1000).toFixed(0);
  console.log(`=== ${step.name}: ${passed} passed, ${failures} failed, ${skipped} skipped in ${seconds} s ${note}`);
}
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 ? 1 : 0;

/** A command that counts as one test. */
async function check(command, args) {
  const { code } = await run(command, args);
  return { code, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1 };
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
  };
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
  const { stats } = readReport(file) ?? {};
  const failed = (stats?.unexpected ?? 0) + (stats?.flaky ?? 0);
  return { code, passed: stats?.expected ?? 0, failed, skipped: stats?.skipped ?? 0 };
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
