import { execFile } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bundleWorker } from "../build.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const entry = fileURLToPath(new URL("../src/index.ts", import.meta.url));
/** The free plan takes 3 MB; we stay far below, because a cold start compiles all of it. */
const GZIPPED_BYTES_MAX = 200_000;

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "agarose-bundle-"));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

const gzippedBytes = async (paths: readonly string[]): Promise<number> => {
  const sizes = await Promise.all(paths.map(async (path) => gzipSync(await readFile(path)).length));
  return sizes.reduce((sum, size) => sum + size, 0);
};

test("the bundle is small, imports its WebAssembly, and has nothing of the fakes", async () => {
  const { script, wasm } = await bundleWorker(entry, join(dir, "esbuild"));
  expect(wasm).toHaveLength(1);
  expect(await gzippedBytes([script, ...wasm])).toBeLessThan(GZIPPED_BYTES_MAX);
  expect(await readFile(script, "utf8")).not.toContain("__dev/fault");
});

test("wrangler builds it from wrangler.toml too, offline", async () => {
  const out = join(dir, "wrangler");
  const wrangler = join(root, "node_modules/wrangler/bin/wrangler.js");
  const args = [wrangler, "deploy", "--dry-run", "--env", "fra", "--outdir", out];
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false", CI: "1" };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
  expect(stdout).toContain("env.CHUNKS");
  expect(stdout).toContain("env.REQUEST_MONITOR (RequestMonitor)");
  const built = (await readdir(out)).filter((name) => /\.(js|wasm)$/.test(name));
  expect(await gzippedBytes(built.map((name) => join(out, name)))).toBeLessThan(GZIPPED_BYTES_MAX);
});
