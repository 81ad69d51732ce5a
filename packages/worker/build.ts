/** Bundles a Worker with esbuild: one module, and beside it the WebAssembly files that it imports. */
import { existsSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

/** The path of wrangler.toml: in the published package, or at the root of the repository. */
export const WRANGLER_CONFIG = ["./wrangler.toml", "../../wrangler.toml"]
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find((path) => existsSync(path))!;

export interface WorkerBundle {
  readonly script: string;
  /** Paths of the WebAssembly files; the module imports them as `./<base name>`. */
  readonly wasm: readonly string[];
}

/** Writes the bundle of `entry` to `outDir`. Rejects with esbuild's report when something does not resolve. */
export async function bundleWorker(entry: string, outDir: string): Promise<WorkerBundle> {
  const script = join(outDir, "worker.js");
  const files = new Set<string>();
  await build({
    entryPoints: [entry],
    outfile: script,
    bundle: true,
    format: "esm",
    target: "es2024",
    platform: "neutral",
    mainFields: ["module", "main"],
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    sourcemap: "linked",
    plugins: [wasmBeside(files)],
    logLevel: "silent",
  });
  const wasm = await Promise.all(
    [...files].map(async (file) => {
      const copy = join(outDir, basename(file));
      await copyFile(file, copy);
      return copy;
    }),
  );
  return { script, wasm };
}

/** Leaves imports of WebAssembly to the runtime, which compiles them before the module starts. */
function wasmBeside(files: Set<string>): Plugin {
  return {
    name: "wasm-beside",
    setup(esbuild) {
      esbuild.onResolve({ filter: /\.wasm$/ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
        if (pluginData === wasmBeside) return undefined;
        const resolved = await esbuild.resolve(path, { importer, resolveDir, kind, pluginData: wasmBeside });
        if (resolved.errors.length > 0) return resolved;
        files.add(resolved.path);
        return { path: `./${basename(resolved.path)}`, external: true };
      });
    },
  };
}
