/**
 * Builds the drop-in files, each complete in itself: `agarose-sw.js`, with the codec's WebAssembly in it (deflated, in base64), and
 * `agarose-sw.offline.js`, which keeps what was read; `agarose-decoder.js` for workers without WebAssembly; and for pages without
 * a bundler `agarose.js`, the page's side, and `agarose-overlay.js`.
 *
 * `node packages/sw/build.ts [folder]` prints their sizes as JSON.
 */
import { readFile, writeFile, mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deflateSync, gzipSync } from "node:zlib";
import { build, type Plugin } from "esbuild";
import { INTERNAL_NAMES, shrunk, shrunkForPages } from "./shrink/index.ts";
import { smallestSpelling } from "./shrink/smallest-spelling.ts";
import { stamped } from "./src/page/worker-file.ts";

/** Sizes in bytes. `scriptGzipBytes` leaves the WebAssembly out, where there is any: it is what the budget is for. */
export interface BuiltFile {
  readonly path: string;
  readonly bytes: number;
  readonly gzipBytes: number;
  readonly scriptGzipBytes: number;
}

interface Script {
  readonly name: string;
  readonly entry: string;
  /** Scripts for a worker's scope, of whatever kind the worker is; the others are modules for pages. */
  readonly isForWorkers: boolean;
  /** Of those with the WebAssembly in them, which are as small as they get: whether they keep what was read. */
  readonly stores?: boolean;
}

const SCRIPTS: readonly Script[] = [
  { name: "agarose-sw.js", entry: "entries/agarose-sw.ts", isForWorkers: true, stores: false },
  { name: "agarose-sw.offline.js", entry: "entries/agarose-sw.offline.ts", isForWorkers: true, stores: true },
  { name: "agarose-decoder.js", entry: "entries/agarose-decoder.ts", isForWorkers: true },
  { name: "agarose.js", entry: "index.ts", isForWorkers: false },
  { name: "agarose-overlay.js", entry: "page/overlay.ts", isForWorkers: false },
];

export interface BuildOptions {
  /**
   * Whether to look for the spelling of each worker that compresses best, as what is published has it: minutes, where that was
   * not done before. Otherwise it is used where it is known, and what is 7% larger where it is not.
   */
  readonly searches?: boolean;
}

/** Writes the files into `folder`, which is made when missing. */
export async function buildServiceWorker(folder: string, options: BuildOptions = {}): Promise<BuiltFile[]> {
  await mkdir(folder, { recursive: true });
  return Promise.all(
    (await built(options)).map(async ({ name, script, wasm }) => {
      const path = join(folder, name);
      await writeFile(path, script);
      const scriptGzipBytes = gzipped(script.replace(wasm, ""));
      return { path, bytes: Buffer.byteLength(script), gzipBytes: gzipped(script), scriptGzipBytes };
    }),
  );
}

/** The files as they are to be served, by name. */
export async function builtFiles(): Promise<Map<string, Uint8Array>> {
  return new Map((await built({})).map(({ name, script }) => [name, new TextEncoder().encode(script)]));
}

interface Built {
  readonly name: string;
  readonly script: string;
  /** The part of it that is WebAssembly; empty where there is none. */
  readonly wasm: string;
}

function built(options: BuildOptions): Promise<Built[]> {
  return Promise.all(
    SCRIPTS.map(async (one) => {
      const { name, isForWorkers } = one;
      const module = await bundle(one, options);
      if (!isForWorkers) return { name, script: module, wasm: "" };
      const wasm = module.includes(PLACE_OF_WASM) ? await packedWasm(RELAXED_WASM) : "";
      // Nothing of it is global but what it sets so, and workers of both kinds run it.
      return { name, script: await stamped(`(()=>{${module.replace(PLACE_OF_WASM, wasm)}})();`), wasm };
    }),
  );
}

/** Stands where the WebAssembly goes, which minifiers need not look at. */
const PLACE_OF_WASM = "place-of-wasm";

async function bundle({ entry, stores }: Script, { searches = false }: BuildOptions): Promise<string> {
  const isSmall = stores !== undefined;
  const result = await build({
    entryPoints: [fileURLToPath(new URL(`src/${entry}`, import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    plugins: [wasmAsText(async () => PLACE_OF_WASM)],
    ...(isSmall ? { mangleProps: INTERNAL_NAMES, mangleCache: {} } : {}),
  });
  const script = result.outputFiles[0]!.text;
  if (!isSmall) return shrunkForPages(script);
  const shortened = Object.values(result.mangleCache!).filter((name) => name !== false);
  return smallestSpelling(await shrunk(script, stores), new Set(shortened), searches);
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

function gzipped(script: string): number {
  return gzipSync(script, { level: 9 }).length;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const folder = process.argv[2] ?? fileURLToPath(new URL("dist", import.meta.url));
  console.log(JSON.stringify(await buildServiceWorker(folder), undefined, 2));
}
