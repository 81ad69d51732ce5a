/**
 * The packages as they are published: JavaScript and declarations in place of the sources, which Node does not run below
 * node_modules. Every package is staged in a folder of its own, laid out like its sources, so that relative paths stay
 * what they are; only the endings change.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildServiceWorker } from "@agarose/sw/build";
import { rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";

export const PACKAGES = ["core", "solver", "ec-wasm", "sw", "worker", "dev-world", "cli"] as const;

export interface PackedPackage {
  readonly name: string;
  readonly folder: string;
  readonly tarball: string;
}

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const BIN = join(ROOT, "node_modules/.bin");
/** What the dependencies need; the sources themselves need 22.18, which strips types. */
const NODE_NEEDED = ">=22.12";
const TESTS = ["**/*.test.ts", "**/*.contract.ts", "**/test/**"];

const run = promisify(execFile);

/** Stages every package below `outDir` and packs it there. */
export async function packPackages(outDir: string): Promise<PackedPackage[]> {
  await rm(outDir, { recursive: true, force: true });
  const names = await Promise.all(PACKAGES.map((directory) => stage(directory, join(outDir, directory))));
  await writeFile(join(outDir, "sw/files/agarose.d.ts"), await declarationsOfPageScript(outDir));
  return Promise.all(
    PACKAGES.map(async (directory, i) => {
      const folder = join(outDir, directory);
      const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", outDir], { cwd: folder });
      return { name: names[i]!, folder, tarball: join(outDir, nameOfTarball(stdout)) };
    }),
  );
}

/** npm 12 answers with an object by package, older ones with a list. */
function nameOfTarball(json: string): string {
  const [packed] = Object.values(JSON.parse(json) as object) as { filename: string }[];
  return packed!.filename;
}

interface PackageJson {
  readonly name: string;
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, Target>>;
}

type Target = string | Readonly<Record<string, string>>;

async function stage(directory: string, folder: string): Promise<string> {
  const source = join(ROOT, "packages", directory);
  const manifest = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as PackageJson;
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(source)) {
    if (/^tsconfig(\.\w+)?\.json$/.test(name)) await emit(source, name, manifest.files, folder);
  }
  // The compiler also writes what the package imports and does not publish.
  for (const name of await readdir(folder)) {
    if (!manifest.files.includes(name.replace(/(\.d\.ts|\.js)$/, ".ts")) && !manifest.files.includes(name)) {
      await rm(join(folder, name), { recursive: true });
    }
  }
  await copyOthers(source, manifest.files, folder);
  if (directory === "sw") await buildServiceWorker(join(folder, "files"));
  if (directory === "worker") await writeFile(join(folder, "wrangler.toml"), await wranglerConfig());
  await renameEndings(folder);
  await writeFile(join(folder, "package.json"), `${JSON.stringify(publishedManifest(manifest), undefined, 2)}\n`);
  return manifest.name;
}

/** Compiles what the package publishes of one of its TypeScript projects. */
async function emit(source: string, project: string, files: readonly string[], folder: string): Promise<void> {
  const { include } = JSON.parse(await readFile(join(source, project), "utf8")) as { include: string[] };
  const published = include.filter((path) => files.includes(path));
  // Some projects are of tests and scripts alone.
  if (published.length === 0) return;
  const config = {
    extends: join(source, project),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      rewriteRelativeImportExtensions: true,
      rootDir: source,
      outDir: folder,
    },
    include: published.map((path) => join(source, path)),
    exclude: TESTS.map((pattern) => join(source, pattern)),
  };
  const path = join(folder, project);
  await writeFile(path, JSON.stringify(config));
  await run(join(BIN, "tsc"), ["-p", path, "--pretty", "false"]).catch((error: { stdout?: string }) => {
    throw new Error(`${source} does not compile:\n${error.stdout}`, { cause: error });
  });
  await rm(path);
}

/** What needs no compiler: WebAssembly, the command, READMEs, and the licence. */
async function copyOthers(source: string, files: readonly string[], folder: string): Promise<void> {
  const isSource = (path: string): boolean => path.endsWith(".ts");
  for (const name of files) {
    await cp(join(source, name), join(folder, name), { recursive: true, filter: (path) => !isSource(path) }).catch(
      (error: NodeJS.ErrnoException) => {
        // `files` also names what only the published package has.
        if (error.code !== "ENOENT") throw error;
      },
    );
  }
  await cp(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
  const readme = join(source, "README.md");
  await cp(readme, join(folder, "README.md")).catch(() => {});
}

/** The compiler renames imports in JavaScript; paths in declarations, and files named relative to a module, are left. */
async function renameEndings(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(js|ts)$/.test(entry.name) || entry.parentPath.endsWith("/files")) continue;
    const path = join(entry.parentPath, entry.name);
    const text = await readFile(path, "utf8");
    const renamed = entry.name.endsWith(".d.ts")
      ? text.replaceAll(/((?:from|import\()\s*"\.[^"]*)\.ts"/g, '$1.js"')
      : text
          .replaceAll(/(new URL\("[^"]*)\.ts"(?=, import\.meta\.url)/g, '$1.js"')
          .replaceAll(/(MAIN = "[^"]*)\.ts"/g, '$1.js"');
    if (renamed !== text) await writeFile(path, renamed);
  }
}

/** The repository's own, as it stands at the root of a project that has installed the package. */
async function wranglerConfig(): Promise<string> {
  const text = await readFile(join(ROOT, "wrangler.toml"), "utf8");
  return text.replaceAll('"packages/worker/src/index.ts"', '"node_modules/@agarose/worker/src/index.js"');
}

/** One file for `agarose.js`, which imports nothing: the declarations of the page's side with those of core that they use. */
async function declarationsOfPageScript(outDir: string): Promise<string> {
  const core = join(outDir, "core/src/index.d.ts");
  const bundle = await rolldown({
    input: join(outDir, "sw/src/index.d.ts"),
    plugins: [
      // Before all others, which would find the sources.
      { name: "core", resolveId: { order: "pre", handler: (id) => (id === "@agarose/core" ? core : undefined) } },
      dts({ dtsInput: true, generator: "oxc", tsconfig: false }),
    ],
  });
  const { output } = await bundle.generate({ format: "esm" });
  return output[0].code;
}

function publishedManifest({ exports, ...manifest }: PackageJson): object {
  const {
    private: _private,
    scripts: _scripts,
    devDependencies: _development,
    ...rest
  } = manifest as Record<string, unknown>;
  return {
    ...rest,
    engines: { node: NODE_NEEDED },
    files: manifest.files.flatMap((path) => [...new Set([built(path, ".js"), built(path, ".d.ts")])]),
    exports: Object.fromEntries(
      Object.entries(exports)
        .filter(([, target]) => isPublished(target, manifest.files))
        .map(([path, target]) => [path, builtTarget(target)]),
    ),
  };
}

/** `./build`, say, is for the repository alone. */
function isPublished(target: Target, files: readonly string[]): boolean {
  const [path] = typeof target === "string" ? [target] : Object.values(target);
  return files.some((file) => path === `./${file}` || path!.startsWith(`./${file}/`));
}

function builtTarget(target: Target): Target {
  if (typeof target === "string") {
    return target.endsWith(".ts") ? { types: built(target, ".d.ts"), default: built(target, ".js") } : target;
  }
  return Object.fromEntries(
    Object.entries(target).map(([condition, path]) => [
      condition,
      built(path, condition === "types" ? ".d.ts" : ".js"),
    ]),
  );
}

function built(path: string, ending: string): string {
  return path.replace(/(?<!\.d)\.ts$/, ending);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = join(ROOT, "dist/npm"), flag] = process.argv.slice(2);
  const packed = await packPackages(folder);
  if (flag === "--json") console.log(JSON.stringify(packed));
  else for (const { name, tarball } of packed) console.log(`${name.padEnd(16)} ${relative(process.cwd(), tarball)}`);
}
