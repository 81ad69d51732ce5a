/**
 * The project around `agarose init`: its framework, its folder of static files, and the lines that register the worker.
 * Reads files and writes none.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "@agarose/core/format";
import { CONFIG_FILE } from "@agarose/storage/config/config";
import { jsonIn } from "@agarose/storage/config/json";

/** A web app as its files show it. Paths are relative to its root. */
export interface Project {
  readonly framework: "Next.js" | "SvelteKit" | "Vite" | "plain HTML";
  /** The file that shows the framework. */
  readonly knownBy: string;
  /** The folder that is served at the root of the app's origin. */
  readonly folder: string;
  /** Whether its build serves the worker's files, by the plugin that `edits` adds. */
  readonly hasPlugin: boolean;
  /** Lines for files that are the app's own, to be pasted by a person. */
  readonly edits: readonly Edit[];
  /** Obstacles for the worker, each with its fix. */
  readonly notes: readonly string[];
}

/** Lines to paste into one file. */
export interface Edit {
  readonly path: string;
  /** `new`: there is no such file. `done`: the file names Agarose already. */
  readonly state: "new" | "add" | "done";
  readonly where: string;
  readonly lines: readonly string[];
}

interface Files {
  readonly root: string;
  readonly packages: ReadonlySet<string>;
}

const PACKAGE = "@agarose/sw";
const NAMED = /@agarose\/sw|virtual:agarose|agarose-sw\.js|\.\/agarose["']/;
const SCRIPTS = ["ts", "js", "mjs", "mts"];
const PAGES = ["tsx", "jsx", "ts", "js"];
/** Packages that make a service worker of their own for the same pages. */
const WORKER_PACKAGES = ["vite-plugin-pwa", "@vite-pwa/sveltekit", "next-pwa", "@serwist/next", "@ducanh2912/next-pwa"];
const OTHER_WORKER = "a page has one worker: see docs/guides/existing-service-worker.md";

/** The call that registers the worker, by whose prefix requests are for objects. */
export function registerCall(prefix: string): string {
  return `register(${prefix === "/ec/" ? "" : `{ prefix: ${JSON.stringify(prefix)} }`})`;
}

/** Returns what the folder `root` holds; undefined when it shows no framework and no page. */
export async function readProject(root: string, prefix: string): Promise<Project | undefined> {
  const files = { root, packages: await packagesOf(root) };
  for (const read of [readNext, readSvelteKit, readVite, readHtml]) {
    const project = await read(files, prefix);
    if (project) return { ...project, notes: [...project.notes, ...commonNotes(files, project)] };
  }
  return undefined;
}

async function readNext(files: Files, prefix: string): Promise<Project | undefined> {
  const knownBy = evidence(files, "next", namesOf("next.config", SCRIPTS));
  if (knownBy === undefined) return undefined;
  const app = { framework: "Next.js" as const, knownBy, folder: "public", hasPlugin: false, notes: [] };
  const pages = first(files, [...namesOf("pages/_app", PAGES), ...namesOf("src/pages/_app", PAGES)]);
  const layouts = [...namesOf("app/layout", PAGES), ...namesOf("src/app/layout", PAGES)];
  const layout = first(files, layouts);
  const effect = `useEffect(() => void ${registerCall(prefix)}, []);`;
  const imports = ['import { useEffect } from "react";', `import { register } from "${PACKAGE}";`];
  if (pages !== undefined && layout === undefined) {
    const lines = [...imports, effect];
    return {
      ...app,
      edits: [await editOf(files, pages, "the imports at the top, the effect in the component", lines)],
    };
  }
  const path = layout ?? (existsSync(join(files.root, "src")) ? "src/app/layout.tsx" : "app/layout.tsx");
  const component = path.replace(/layout(\.\w+)$/, "agarose$1");
  const lines = ['"use client";', ...imports, "", "export function Agarose() {", `  ${effect}`, "  return null;", "}"];
  const shown = ['import { Agarose } from "./agarose";', "<Agarose />"];
  return {
    ...app,
    edits: [
      await editOf(files, component, "the whole file", lines),
      await editOf(files, path, "the import at the top, the element in <body>", shown),
    ],
  };
}

async function readSvelteKit(files: Files, prefix: string): Promise<Project | undefined> {
  const knownBy = evidence(files, "@sveltejs/kit", []);
  if (knownBy === undefined) return undefined;
  const lines = [
    "<script>",
    '  import { onMount } from "svelte";',
    `  import { register } from "${PACKAGE}";`,
    `  onMount(() => void ${registerCall(prefix)});`,
    "</script>",
  ];
  const own = first(files, [
    ...namesOf("src/service-worker", SCRIPTS),
    ...namesOf("src/service-worker/index", SCRIPTS),
  ]);
  return {
    framework: "SvelteKit",
    knownBy,
    folder: "static",
    hasPlugin: true,
    edits: [
      await vitePlugin(files),
      await editOf(files, "src/routes/+layout.svelte", "in its <script>; a new file also renders its children", lines),
    ],
    notes: own === undefined ? [] : [`SvelteKit registers ${own} for the same pages, and ${OTHER_WORKER}`],
  };
}

async function readVite(files: Files, prefix: string): Promise<Project | undefined> {
  const knownBy = evidence(files, "vite", namesOf("vite.config", SCRIPTS));
  if (knownBy === undefined) return undefined;
  const config = await textOf(files, first(files, namesOf("vite.config", SCRIPTS)));
  const folder = /publicDir:\s*["']([^"']+)["']/.exec(config)?.[1] ?? "public";
  const page = await textOf(files, "index.html");
  const script = /<script\b[^>]*\bsrc=["']\/?([^"':]+\.[jt]sx?)["']/.exec(page)?.[1];
  const lines = ['import { register } from "virtual:agarose";', `await ${registerCall(prefix)};`];
  const entry = script ?? first(files, namesOf("src/main", PAGES)) ?? "src/main.js";
  const edits = [await vitePlugin(files), await editOf(files, entry, "before any read through Agarose", lines)];
  const isTyped = /\.tsx?$/.test(entry) && edits[1]!.state !== "done";
  const notes = isTyped ? ['tsconfig.json needs "types": ["@agarose/sw/virtual"] in compilerOptions'] : [];
  return { framework: "Vite", knownBy, folder, hasPlugin: true, edits, notes };
}

async function readHtml(files: Files, prefix: string): Promise<Project | undefined> {
  const page = first(files, ["index.html", "public/index.html"]);
  if (page === undefined) return undefined;
  const lines = [
    '<script type="module">',
    '  import { register } from "/agarose.js";',
    `  await ${registerCall(prefix)};`,
    "</script>",
  ];
  const edits = [await editOf(files, page, "in <head>", lines)];
  const folder = page.startsWith("public/") ? "public" : ".";
  const isServed = folder === "." && existsSync(join(files.root, CONFIG_FILE));
  const notes = isServed
    ? [`this folder is served, ${CONFIG_FILE} with it: keep that file and its keys elsewhere`]
    : [];
  return { framework: "plain HTML", hasPlugin: false, knownBy: page, folder, edits, notes };
}

function vitePlugin(files: Files): Promise<Edit> {
  const path = first(files, namesOf("vite.config", SCRIPTS)) ?? "vite.config.js";
  const lines = [`import { agarose } from "${PACKAGE}/vite";`, "plugins: [agarose()],"];
  return editOf(files, path, "the import at the top, agarose() first in `plugins`", lines);
}

function commonNotes({ packages }: Files, { framework }: Project): string[] {
  const missing = framework !== "plain HTML" && !packages.has(PACKAGE);
  const other = WORKER_PACKAGES.find((name) => packages.has(name));
  return [
    ...(missing ? [`package.json lacks ${PACKAGE}: install it, as docs/guides/web-app.md explains`] : []),
    ...(other === undefined ? [] : [`${other} makes a worker for the same pages, and ${OTHER_WORKER}`]),
  ];
}

async function editOf(files: Files, path: string, where: string, lines: readonly string[]): Promise<Edit> {
  if (!existsSync(join(files.root, path))) return { path, state: "new", where, lines };
  return { path, state: NAMED.test(await textOf(files, path)) ? "done" : "add", where, lines };
}

/** Config files say more than package.json, which may name a tool for its tests only. */
function evidence(files: Files, name: string, configs: readonly string[]): string | undefined {
  return first(files, configs) ?? (files.packages.has(name) ? "package.json" : undefined);
}

function first({ root }: Files, paths: readonly string[]): string | undefined {
  return paths.find((path) => existsSync(join(root, path)));
}

function namesOf(stem: string, endings: readonly string[]): string[] {
  return endings.map((ending) => `${stem}.${ending}`);
}

async function textOf({ root }: Pick<Files, "root">, path: string | undefined): Promise<string> {
  return path === undefined ? "" : readFile(join(root, path), "utf8").catch(() => "");
}

/** The names of all packages that package.json depends on. None for a file that is missing or no JSON. */
async function packagesOf(root: string): Promise<Set<string>> {
  const manifest = jsonIn(await textOf({ root }, "package.json"));
  const fields = isRecord(manifest) ? [manifest["dependencies"], manifest["devDependencies"]] : [];
  return new Set(fields.flatMap((field) => (isRecord(field) ? Object.keys(field) : [])));
}
