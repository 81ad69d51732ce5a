/**
 * The packages as they are published. Node does not run TypeScript below node_modules, so each package is staged in its
 * own folder with JavaScript and declarations in place of its sources. tsdown compiles file by file, which keeps the
 * layout and therefore every relative path.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { buildServiceWorker } from "@agarose/sw/build";
import { build, type InlineConfig, type Rolldown } from "tsdown";
import { configJsonSchema } from "../docs/config-reference.ts";
import { SIZES_PAGE, withSizes, type PackageSize } from "./size-table.ts";

/** Folders below packages/, in an order in which each package follows those that it depends on. */
export const PACKAGES = [
  "core",
  "solver",
  "ec-wasm",
  "s3-server",
  "storage",
  "sw",
  "worker",
  "pop",
  "dev-world",
  "cli",
  "scrubber",
  "create-agarose",
] as const;

/** A package in its folder and as a tarball. Packed is what npm loads, unpacked its files without dependencies. */
export interface PackedPackage extends PackageSize {
  readonly folder: string;
  readonly tarball: string;
}

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const BIN = join(ROOT, "node_modules/.bin");
/** The Node that the sources need, so that there is one version to name. */
const NODE_NEEDED = ">=22.19";
const IS_TEST = /\.(test|contract)\.ts$|(^|\/)test\//;

const run = promisify(execFile);

/** Stages every package below `outDir`, packs it there, and calls `onPackage` after each. */
export async function packPackages(
  outDir: string,
  onPackage: (packed: PackedPackage) => void = () => {},
): Promise<PackedPackage[]> {
  const target = resolve(outDir);
  await rm(target, { recursive: true, force: true });
  const packed: PackedPackage[] = [];
  for (const directory of PACKAGES) {
    const folder = join(target, directory);
    const name = await stage(join(ROOT, "packages", directory), folder);
    const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", target], { cwd: folder });
    const { filename, size, unpackedSize } = packedBy(stdout);
    packed.push({
      name,
      folder,
      tarball: join(target, filename),
      packedBytes: size,
      unpackedBytes: unpackedSize,
    });
    onPackage(packed.at(-1)!);
  }
  return packed;
}

/** npm 12 prints an object by package, older versions print a list. */
function packedBy(json: string): { filename: string; size: number; unpackedSize: number } {
  const [packed] = Object.values(JSON.parse(json) as object) as ReturnType<typeof packedBy>[];
  return packed!;
}

interface PackageJson {
  readonly name: string;
  readonly files: readonly string[];
  readonly exports: Readonly<Record<string, Target>>;
}

type Target = string | Readonly<Record<string, string>>;

/** Writes the published form of the package in `source` to `folder` and resolves with its name. */
async function stage(source: string, folder: string): Promise<string> {
  const manifest = JSON.parse(await readFile(join(source, "package.json"), "utf8")) as PackageJson;
  await mkdir(folder, { recursive: true });
  const compiled = new Set<string>();
  for (const project of (await readdir(source)).filter((name) => /^tsconfig(\.\w+)?\.json$/.test(name)).toSorted()) {
    const sources = (await sourcesOf(join(source, project), manifest.files)).filter((path) => !compiled.has(path));
    for (const path of sources) compiled.add(path);
    // Some projects contain only tests and scripts.
    if (sources.length > 0) await compile(source, project, sources, folder);
  }
  await copyOthers(source, manifest.files, folder);
  if (manifest.name === "@agarose/sw") await addServiceWorker(folder);
  if (manifest.name === "agarose") {
    await writeFile(join(folder, "config-schema.json"), JSON.stringify(configJsonSchema()));
  }
  if (manifest.name === "@agarose/worker") await writeFile(join(folder, "wrangler.toml"), await wranglerConfig());
  await writeFile(join(folder, "package.json"), `${JSON.stringify(publishedManifest(manifest), undefined, 2)}\n`);
  return manifest.name;
}

/** The sources of a TypeScript project that its package publishes, relative to the package. */
async function sourcesOf(project: string, published: readonly string[]): Promise<string[]> {
  const { stdout } = await run(join(BIN, "tsc"), ["--showConfig", "-p", project]);
  const { files = [] } = JSON.parse(stdout) as { files?: string[] };
  return files
    .map((path) => path.replace(/^\.\//, ""))
    .filter((path) => published.some((entry) => path === entry || path.startsWith(`${entry}/`)))
    .filter((path) => !path.endsWith(".d.ts") && !IS_TEST.test(path));
}

const TSDOWN: InlineConfig = {
  config: false,
  format: "esm",
  platform: "neutral",
  target: false,
  fixedExtension: false,
  hash: false,
  clean: false,
  report: false,
  logLevel: "error",
};

/** One module of JavaScript and one of declarations per source, at the same place below `folder`. */
async function compile(source: string, project: string, sources: string[], folder: string): Promise<void> {
  // Beside the project, because declarations are laid out relative to their tsconfig; without tests, whose imports
  // from outside the package would be written beside their sources.
  const tsconfig = join(source, `.publish.${process.pid}.json`);
  await writeFile(tsconfig, JSON.stringify({ extends: `./${project}`, files: sources, include: [] }));
  try {
    await build({
      ...TSDOWN,
      cwd: source,
      root: source,
      entry: sources,
      tsconfig,
      outDir: folder,
      unbundle: true,
      treeshake: false,
      dts: { tsconfig },
      inputOptions: { external: (id) => id.endsWith(".wasm") || !/^[./]/.test(id) },
    });
  } finally {
    await rm(tsconfig);
  }
}

/** Files that need no compiler: WebAssembly, the command, the README and the licence. */
async function copyOthers(source: string, files: readonly string[], folder: string): Promise<void> {
  const isSource = (path: string): boolean => /(?<!\.d)\.ts$/.test(path);
  for (const name of ["README.md", ...files]) {
    await cp(join(source, name), join(folder, name), { recursive: true, filter: (path) => !isSource(path) }).catch(
      (error: NodeJS.ErrnoException) => {
        // `files` also names what only the published package has.
        if (error.code !== "ENOENT") throw error;
      },
    );
  }
  await cp(join(ROOT, "LICENSE"), join(folder, "LICENSE"));
}

/**
 * The drop-in files, and for `agarose.js` one file of declarations that imports nothing, with those of core inlined.
 */
async function addServiceWorker(folder: string): Promise<void> {
  const files = join(folder, "files");
  const core = join(folder, "../core");
  await buildServiceWorker(files);
  await build({
    ...TSDOWN,
    cwd: folder,
    entry: { agarose: "src/page/drop-in.d.ts" },
    outDir: files,
    tsconfig: false,
    dts: { dtsInput: true, generator: "oxc", tsconfig: false },
    // Before the resolver of declarations, which would find the sources.
    inputOptions: async (options) => ({
      ...options,
      plugins: [await packageIn("@agarose/core", core), options.plugins],
    }),
    deps: { alwaysBundle: [/^@agarose\//] },
  });
}

/** A plugin that resolves imports of the package `name` to the declarations of its published form in `folder`. */
async function packageIn(name: string, folder: string): Promise<Rolldown.Plugin> {
  const { exports } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as PackageJson;
  const paths = Object.entries(exports).map(([path, target]) => [
    join(name, path),
    join(folder, (target as { types: string }).types),
  ]);
  const files = new Map(paths as [string, string][]);
  return { name: `resolve-${name}`, resolveId: { order: "pre", handler: (id) => files.get(id) } };
}

/** The repository's own, with the path that the Worker has in a project that has installed the package. */
async function wranglerConfig(): Promise<string> {
  const text = await readFile(join(ROOT, "wrangler.toml"), "utf8");
  return text.replaceAll('"packages/worker/src/index.ts"', '"node_modules/@agarose/worker/src/index.js"');
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
        .filter(([path, target]) => !path.startsWith("./internal/") && isPublished(target, manifest.files))
        .map(([path, target]) => [path, builtTarget(target)]),
    ),
  };
}

/** False for a path such as `./build`, which only the repository uses, as it uses those below `./internal/`. */
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
  const started = performance.now();
  let count = 0;
  const packed = await packPackages(folder, ({ name, tarball }) => {
    const seconds = (performance.now() - started) / 1000;
    const left = ((seconds / ++count) * (PACKAGES.length - count)).toFixed(0);
    const progress = `${count}/${PACKAGES.length} ${seconds.toFixed(0).padStart(3)} s, about ${left.padStart(2)} s left`;
    console.error(`${progress}  ${name.padEnd(18)} ${relative(process.cwd(), tarball)}`);
  });
  if (flag === "--json") console.log(JSON.stringify(packed));
  else console.error(`packed into ${relative(process.cwd(), folder)}: docs/start.md makes an app of these packages`);
  if (flag === "--sizes") {
    const page = join(ROOT, SIZES_PAGE);
    await writeFile(page, withSizes(await readFile(page, "utf8"), packed));
  }
}
