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
import { smallestSpelling } from "./shrink/smallest-spelling.ts";
import { stamped } from "./src/worker-file.ts";

/** Sizes in bytes. `scriptGzipBytes` leaves the WebAssembly out, where there is any: it is what the budget is for. */
export interface BuiltFile {
  readonly path: string;
  readonly bytes: number;
  readonly gzipBytes: number;
  readonly scriptGzipBytes: number;
}

/** A script that is built, and the files that are made of it. */
interface Script {
  readonly entry: string;
  /** Whether it has the WebAssembly in it. */
  readonly isWorker: boolean;
  readonly stores: boolean;
  readonly files: Readonly<Record<string, (script: string) => string>>;
}

const asItIs = (script: string): string => script;

const SCRIPTS: readonly Script[] = [
  {
    entry: "entry.ts",
    isWorker: true,
    stores: false,
    files: { "agarose-sw.js": asItIs, "agarose-sw.classic.js": asClassic },
  },
  {
    entry: "entry-offline.ts",
    isWorker: true,
    stores: true,
    files: { "agarose-sw.offline.js": asItIs, "agarose-sw.offline.classic.js": asClassic },
  },
  { entry: "index.ts", isWorker: false, stores: true, files: { "agarose.js": asItIs } },
  { entry: "overlay.ts", isWorker: false, stores: true, files: { "agarose-overlay.js": asItIs } },
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
    (await built(options)).map(async ({ name, script, whole }) => {
      const path = join(folder, name);
      await writeFile(path, whole);
      const scriptGzipBytes = gzipped(new TextEncoder().encode(script.replace(PLACE_OF_WASM, "")));
      return { path, bytes: whole.length, gzipBytes: gzipped(whole), scriptGzipBytes };
    }),
  );
}

/** The files as they are to be served, by name. */
export async function builtFiles(): Promise<Map<string, Uint8Array>> {
  return new Map((await built({})).map(({ name, whole }) => [name, whole]));
}

interface Built {
  readonly name: string;
  /** Without the WebAssembly. */
  readonly script: string;
  readonly whole: Uint8Array;
}

async function built(options: BuildOptions): Promise<Built[]> {
  const files = SCRIPTS.map(async (one) => {
    const script = await bundle(one, options);
    return Promise.all(
      Object.entries(one.files).map(async ([name, made]) => {
        const own = made(script);
        return { name, script: own, whole: await contents(one, own) };
      }),
    );
  });
  return (await Promise.all(files)).flat();
}

/** Stands where the WebAssembly goes, which minifiers need not look at. */
const PLACE_OF_WASM = "place-of-wasm";

async function contents({ isWorker }: Script, script: string): Promise<Uint8Array> {
  const whole = isWorker ? await stamped(script.replace(PLACE_OF_WASM, await packedWasm(RELAXED_WASM))) : script;
  return new TextEncoder().encode(whole);
}

async function bundle({ entry, isWorker, stores }: Script, { searches = false }: BuildOptions): Promise<string> {
  const result = await build({
    entryPoints: [fileURLToPath(new URL(`src/${entry}`, import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    platform: "browser",
    target: "es2022",
    legalComments: "none",
    plugins: [wasmAsText(async () => PLACE_OF_WASM)],
    ...(isWorker ? { mangleProps: INTERNAL_NAMES, mangleCache: {} } : {}),
  });
  const script = result.outputFiles[0]!.text;
  // A page's errors are read by people: they keep their words.
  if (!isWorker) return minified(script);
  const shortened = Object.values(result.mangleCache!).filter((name) => name !== false);
  return smallestSpelling(await shrunk(script, stores), new Set(shortened), searches);
}

/**
 * A worker's module as a classic script, for browsers without module workers and for workers that call `importScripts`: it
 * sets the global function `agarose`. It cannot tell whether it was imported but by the worker's name: another worker's
 * query is not for us.
 */
function asClassic(module: string): string {
  const isWorkerItself = /import\.meta\.url===(\w+\.location\.href)|(\w+\.location\.href)===import\.meta\.url/;
  const exported = /export\{(\w+) as agarose\};?/;
  for (const part of [isWorkerItself, exported]) {
    if (!part.test(module))
      throw new Error(`the worker's script has no ${part}: build.ts and its entry belong together`);
  }
  const script = module
    .replace(isWorkerItself, (_, right, left) => `/agarose-sw[^/]*\\.js$/.test(new URL(${right ?? left}).pathname)`)
    .replace(exported, "globalThis.agarose=$1;");
  return `(()=>{${script}})();`;
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
