/**
 * Builds the drop-in files with Rolldown, each with a source map beside it.
 *
 * `node packages/sw/build.ts [folder]` writes them and prints their sizes as JSON. `node packages/sw/build.ts --table`
 * prints the size table of the README.
 */
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { rolldown, type Plugin } from "rolldown";
import { CODEC_FILE, WORKER_FILES } from "./src/common/worker-files.ts";
import { stampOf } from "./src/page/worker-file.ts";

/** A script with its source map as JSON. */
interface Bundled {
  readonly code: string;
  readonly map: string;
}

/** A file that was written, with its sizes in bytes. Source maps are not listed. */
export interface BuiltFile {
  readonly path: string;
  readonly bytes: number;
  /** By `gzip -9`. */
  readonly gzipBytes: number;
  /** By Brotli at quality 11. */
  readonly brotliBytes: number;
}

/** How to build one file. */
interface Script {
  readonly name: string;
  /** Below `src/`. */
  readonly entry: string;
  /** A worker's script is a closure with a stamp; a page's is a module. */
  readonly runsIn: "worker" | "page";
  /** Without messages, errors carry a code and details. */
  readonly messages: boolean;
  /** Whether it decrypts. A worker that does not reads encrypted objects through a PoP. */
  readonly encryption: boolean;
  /** Whether it can store what it reads. Default true. */
  readonly store?: boolean;
  /** Default true. */
  readonly minify?: boolean;
}

const SCRIPTS: readonly Script[] = [
  ...Object.entries(WORKER_FILES).map(([name, { store = false, encryption = false, removes }]): Script => {
    const entry = `entries/agarose-sw${removes ? ".remove" : store ? ".offline" : ""}.ts`;
    const isDev = name.endsWith(".dev.js");
    return { name, entry, runsIn: "worker", messages: isDev, minify: !isDev, encryption, store };
  }),
  {
    name: CODEC_FILE,
    entry: "entries/agarose-codec.ts",
    runsIn: "worker",
    messages: false,
    encryption: false,
  },
  { name: "agarose.js", entry: "page/drop-in.ts", runsIn: "page", messages: true, encryption: false },
  { name: "agarose-client.js", entry: "page/drop-in-client.ts", runsIn: "page", messages: true, encryption: true },
  { name: "agarose-devtools.js", entry: "devtools/index.ts", runsIn: "page", messages: true, encryption: true },
  { name: "agarose-upload.js", entry: "entries/agarose-upload.ts", runsIn: "page", messages: true, encryption: false },
];

/** Builds every file into `folder`, which is created if it is missing. */
export async function buildServiceWorker(folder: string): Promise<BuiltFile[]> {
  await mkdir(folder, { recursive: true });
  const files = await builtFiles();
  for (const [name, contents] of files) await writeFile(join(folder, name), contents);
  return SCRIPTS.map(({ name }) => ({ path: join(folder, name), ...sizesOf(files.get(name)!) }));
}

/** Builds every file in memory. Returns the contents by name, source maps included. */
export async function builtFiles(): Promise<Map<string, Uint8Array>> {
  const encoder = new TextEncoder();
  const files = new Map<string, Uint8Array>();
  for (const script of SCRIPTS) {
    const { code, map } = await bundle(script);
    files.set(script.name, encoder.encode(code));
    files.set(`${script.name}.map`, encoder.encode(map));
  }
  return files;
}

async function bundle({
  name,
  entry,
  runsIn,
  messages,
  encryption,
  store = true,
  minify = true,
}: Script): Promise<Bundled> {
  const isWorker = runsIn === "worker";
  const build = await rolldown({
    input: fileURLToPath(new URL(`src/${entry}`, import.meta.url)),
    platform: "browser",
    transform: {
      target: "es2022",
      define: {
        AGAROSE_MESSAGES: String(messages),
        AGAROSE_ENCRYPTION: String(encryption),
        AGAROSE_STORE: String(store),
        AGAROSE_IN_PLACE: "false",
      },
    },
    plugins: [wasmAsText()],
    treeshake: { propertyReadSideEffects: false },
  });
  const { output } = await build.generate({
    // A closure adds nothing global, and runs in classic workers and in module workers.
    format: isWorker ? "iife" : "esm",
    minify,
    comments: false,
    sourcemap: true,
    sourcemapPathTransform: sourcePath,
  });
  await build.close();
  const [chunk] = output;
  const code = chunk.code.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n");
  const script = `${code}//# sourceMappingURL=${name}.map\n`;
  // The stamp is its own line, so the map begins one line later.
  const stamp = isWorker ? `${stampOf(name, createHash("sha256").update(script).digest("hex"))}\n` : "";
  const mappings = `${isWorker ? ";" : ""}${chunk.map!.mappings}`;
  return { code: stamp + script, map: JSON.stringify({ ...chunk.map, mappings, file: name }) };
}

/** Names a source by its path in the repository, so that a source map is the same on every machine. */
function sourcePath(relativePath: string): string {
  const path = relativePath.replaceAll("\\", "/");
  return `agarose/${path.slice(path.lastIndexOf("packages/"))}`;
}

/**
 * A Rolldown plugin: an import of a `.wasm` file is a string with one character per byte. The server's compression then
 * works on WebAssembly itself, and no compressor of this machine has a part in the bytes.
 */
function wasmAsText(): Plugin {
  return {
    name: "wasm-as-text",
    load: {
      filter: { id: /\.wasm$/ },
      async handler(id) {
        return { code: `export default ${JSON.stringify(await readFile(id, "latin1"))}`, moduleType: "js" };
      },
    },
  };
}

/** The cost of each feature, as rows of a Markdown table: sizes of whole files in bytes. */
export async function sizeTable(): Promise<string> {
  const [worker, offline] = SCRIPTS as readonly [Script, Script];
  const rows: [what: string, built: Bundled][] = [
    ["`agarose-sw.js`", await bundle(worker)],
    ["with the offline store (`agarose-sw.offline.js`)", await bundle(offline)],
    ["and with decryption (`agarose-sw.encryption.js`)", await bundle({ ...offline, encryption: true })],
    ["with error messages", await bundle({ ...worker, messages: true })],
  ];
  for (const script of SCRIPTS.filter(({ name }) => /^agarose(-codec|-client|-devtools|-upload|)\.js$/.test(name)))
    rows.push([`\`${script.name}\``, await bundle(script)]);
  const lines = rows.map(([what, { code }]) => {
    const { gzipBytes, brotliBytes } = sizesOf(new TextEncoder().encode(code));
    return `| ${what} | ${gzipBytes} | ${brotliBytes} |`;
  });
  return ["| file | gzip -9 | Brotli 11 |", "| --- | --: | --: |", ...lines].join("\n");
}

function sizesOf(contents: Uint8Array): Omit<BuiltFile, "path"> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  return {
    bytes: contents.length,
    gzipBytes: gzipSync(contents, { level: 9 }).length,
    brotliBytes: brotliCompressSync(contents, { params }).length,
  };
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [folder = fileURLToPath(new URL("dist", import.meta.url))] = process.argv.slice(2);
  if (folder === "--table") console.log(await sizeTable());
  else console.log(JSON.stringify(await buildServiceWorker(folder), undefined, 2));
}
