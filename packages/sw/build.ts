/**
 * Builds the drop-in files: `agarose-sw.js` (ES module) and `agarose-sw.classic.js` (classic script), each complete in
 * itself, with the codec's WebAssembly in it (deflated, in base64); and `agarose.js`, the page's side for pages without a
 * bundler.
 *
 * `node packages/sw/build.ts [folder]` prints their sizes as JSON.
 */
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync, gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { minify } from "vite";
import { stamped } from "./src/worker-file.ts";

/** Sizes in bytes. `scriptGzipBytes` leaves the WebAssembly out, where there is any: it is what the budget is for. */
export interface BuiltFile {
  readonly path: string;
  readonly bytes: number;
  readonly gzipBytes: number;
  readonly scriptGzipBytes: number;
}

const FILES = [
  { name: "agarose-sw.js", entry: "entry-module.ts", format: "esm", isWorker: true },
  { name: "agarose-sw.classic.js", entry: "entry-classic.ts", format: "iife", isWorker: true },
  { name: "agarose.js", entry: "index.ts", format: "esm", isWorker: false },
] as const;

/** Writes the files into `folder`, which is made when missing. */
export async function buildServiceWorker(folder: string): Promise<BuiltFile[]> {
  await mkdir(folder, { recursive: true });
  return Promise.all(
    FILES.map(async (file) => {
      const path = join(folder, file.name);
      const [whole, script] = await Promise.all([contents(file, true), contents(file, false)]);
      await writeFile(path, whole);
      return { path, bytes: whole.length, gzipBytes: gzipped(whole), scriptGzipBytes: gzipped(script) };
    }),
  );
}

/** The workers' files as they are to be served, by name. */
export async function workerFiles(): Promise<Map<string, Uint8Array>> {
  const workers = FILES.filter(({ isWorker }) => isWorker);
  return new Map(await Promise.all(workers.map(async (file) => [file.name, await contents(file, true)] as const)));
}

async function contents({ entry, format, isWorker }: (typeof FILES)[number], withWasm: boolean): Promise<Uint8Array> {
  const script = await bundle(entry, format, withWasm);
  return new TextEncoder().encode(isWorker ? await stamped(script) : script);
}

async function bundle(entry: string, format: "esm" | "iife", withWasm: boolean): Promise<string> {
  const result = await build({
    entryPoints: [fileURLToPath(new URL(`src/${entry}`, import.meta.url))],
    bundle: true,
    write: false,
    minify: true,
    format,
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    plugins: [wasmAsText(withWasm)],
  });
  return minified(result.outputFiles[0]!.text, format);
}

/** A second minifier over esbuild's output: it inlines what esbuild leaves, for 3% less. */
async function minified(script: string, format: "esm" | "iife"): Promise<string> {
  const options = { compress: { target: "es2022" }, mangle: { toplevel: true }, codegen: { removeWhitespace: true } };
  const { code, errors } = await minify("file.js", script, { ...options, module: format === "esm" });
  if (errors.length === 0) return code;
  throw new Error(`the bundle was not minified: ${errors.map(({ message }) => message).join("; ")}`);
}

/** For esbuild: a `.wasm` file becomes the text that `inlined-decoder.ts` unpacks. */
export function wasmAsText(withWasm: boolean): Plugin {
  return {
    name: "wasm-as-text",
    setup({ onLoad }) {
      onLoad({ filter: /\.wasm$/ }, async ({ path }) => ({
        contents: withWasm ? deflateSync(await readFile(path), { level: 9 }).toString("base64") : "",
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
