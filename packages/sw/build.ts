/**
 * Builds the drop-in files: `agarose-sw.js` (ES module) and `agarose-sw.classic.js` (classic script), each complete in
 * itself, with the codec's WebAssembly as base64 in it; and `agarose.js`, the page's side for pages without a bundler.
 *
 * `node packages/sw/build.ts [folder]` prints their sizes as JSON.
 */
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";

/** Sizes in bytes. `scriptGzipBytes` leaves the WebAssembly out, where there is any: it is what the budget is for. */
export interface BuiltFile {
  readonly path: string;
  readonly bytes: number;
  readonly gzipBytes: number;
  readonly scriptGzipBytes: number;
}

const FILES = [
  { name: "agarose-sw.js", entry: "entry-module.ts", format: "esm" },
  { name: "agarose-sw.classic.js", entry: "entry-classic.ts", format: "iife" },
  { name: "agarose.js", entry: "index.ts", format: "esm" },
] as const;

/** Writes the files into `folder`, which is made when missing. */
export async function buildServiceWorker(folder: string): Promise<BuiltFile[]> {
  await mkdir(folder, { recursive: true });
  return Promise.all(
    FILES.map(async ({ name, entry, format }) => {
      const path = join(folder, name);
      const [whole, script] = await Promise.all([bundle(entry, format, true), bundle(entry, format, false)]);
      await writeFile(path, whole);
      return { path, bytes: whole.length, gzipBytes: gzipped(whole), scriptGzipBytes: gzipped(script) };
    }),
  );
}

async function bundle(entry: string, format: "esm" | "iife", withWasm: boolean): Promise<Uint8Array> {
  const result = await build({
    entryPoints: [fileURLToPath(new URL(`src/${entry}`, import.meta.url))],
    bundle: true,
    write: false,
    minify: true,
    format,
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    plugins: [wasmAsBase64(withWasm)],
  });
  return result.outputFiles[0]!.contents;
}

function wasmAsBase64(withWasm: boolean): Plugin {
  return {
    name: "wasm-as-base64",
    setup({ onLoad }) {
      onLoad({ filter: /\.wasm$/ }, async ({ path }) => ({
        contents: withWasm ? (await readFile(path)).toString("base64") : "",
        loader: "text",
      }));
    },
  };
}

function gzipped(bytes: Uint8Array): number {
  return gzipSync(bytes, { level: 9 }).length;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2] ?? fileURLToPath(new URL("dist", import.meta.url));
  console.log(JSON.stringify(await buildServiceWorker(folder), undefined, 2));
}
