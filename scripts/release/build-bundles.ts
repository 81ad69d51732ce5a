/** Builds the deployable bundles into the folder given and prints their sizes; `build.mjs` brings the Node it needs. */
import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { buildServiceWorker } from "@agarose/sw/build";
import { bundleWorker } from "@agarose/worker/build";

const outDir = process.argv[2] ?? "dist";
const workerEntry = fileURLToPath(new URL("../../packages/worker/src/index.ts", import.meta.url));

const serviceWorkers = await buildServiceWorker(join(outDir, "sw"));
const { script, wasm } = await bundleWorker(workerEntry, join(outDir, "worker"));

for (const path of [...serviceWorkers.map((file) => file.path), script, ...wasm]) {
  const bytes = await readFile(path);
  const gzipped = gzipSync(bytes, { level: 9 }).length;
  console.log(`${kB(bytes.length)} ${kB(gzipped)} gzipped  ${relative(process.cwd(), path)}`);
}

function kB(bytes: number): string {
  return `${(bytes / 1000).toFixed(1).padStart(7)} kB`;
}
