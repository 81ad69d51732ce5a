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
import { INTERNAL_NAMES, minified, shrunk } from "./shrink/index.ts";
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
  { name: "agarose-sw.offline.js", entry: "entry-offline-module.ts", format: "esm", isWorker: true },
  { name: "agarose-sw.offline.classic.js", entry: "entry-offline-classic.ts", format: "iife", isWorker: true },
  { name: "agarose.js", entry: "index.ts", format: "esm", isWorker: false },
  { name: "agarose-overlay.js", entry: "overlay.ts", format: "esm", isWorker: false },
] as const;

/** Writes the files into `folder`, which is made when missing. */
export async function buildServiceWorker(folder: string): Promise<BuiltFile[]> {
  await mkdir(folder, { recursive: true });
  return Promise.all(
    FILES.map(async (file) => {
      const path = join(folder, file.name);
      const script = await bundle(file);
      const whole = await contents(file, script);
      await writeFile(path, whole);
      const scriptGzipBytes = gzipped(new TextEncoder().encode(script.replace(PLACE_OF_WASM, "")));
      return { path, bytes: whole.length, gzipBytes: gzipped(whole), scriptGzipBytes };
    }),
  );
}

/** The files as they are to be served, by name. */
export async function builtFiles(): Promise<Map<string, Uint8Array>> {
  return new Map(
    await Promise.all(FILES.map(async (file) => [file.name, await contents(file, await bundle(file))] as const)),
  );
}

/** Stands where the WebAssembly goes, which minifiers need not look at. */
const PLACE_OF_WASM = "place-of-wasm";

async function contents({ isWorker }: (typeof FILES)[number], script: string): Promise<Uint8Array> {
  const whole = isWorker ? await stamped(script.replace(PLACE_OF_WASM, await packedWasm(RELAXED_WASM))) : script;
  return new TextEncoder().encode(whole);
}

async function bundle(file: (typeof FILES)[number]): Promise<string> {
  const { name, entry, format, isWorker } = file;
  const result = await build({
    entryPoints: [fileURLToPath(new URL(`src/${entry}`, import.meta.url))],
    bundle: true,
    write: false,
    format,
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    plugins: [wasmAsText(async () => PLACE_OF_WASM)],
    ...(isWorker ? { mangleProps: INTERNAL_NAMES } : {}),
  });
  const script = result.outputFiles[0]!.text;
  // A page's errors are read by people: they keep their words.
  return isWorker ? shrunk(script, format, name.includes("offline")) : minified(script, format);
}

const RELAXED_WASM = fileURLToPath(import.meta.resolve("@agarose/ec-wasm/relaxed.wasm"));

/** A WebAssembly module as the text that `inlined-decoder.ts` unpacks. */
async function packedWasm(path: string): Promise<string> {
  return deflateSync(await readFile(path), { level: 9 }).toString("base64");
}

/** For esbuild: a `.wasm` file becomes a text. */
export function wasmAsText(textOf: (path: string) => Promise<string> = packedWasm): Plugin {
  return {
    name: "wasm-as-text",
    setup({ onLoad }) {
      onLoad({ filter: /\.wasm$/ }, async ({ path }) => ({ contents: await textOf(path), loader: "text" }));
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
