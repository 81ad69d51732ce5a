/** `agarose init` in small projects of each framework, made here. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runAgarose } from "../../../test/world.ts";
import { readProject, type Project } from "./project.ts";

const PACKAGE = { dependencies: { "@agarose/sw": "*" } };

interface Report {
  readonly dryRun: boolean;
  readonly files: readonly { path: string; outcome: string }[];
  readonly project?: Project;
}

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "agarose-project-"));
});

afterEach(() => rm(root, { recursive: true }));

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
}

async function all(): Promise<Record<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [path.slice(root.length + 1), await readFile(path, "utf8")])),
  ) as Record<string, string>;
}

async function init(...args: string[]): Promise<Report> {
  const { code, stdout, stderr } = await runAgarose(["init", "--json", ...args], root);
  expect(stderr).toBe("");
  expect(code).toBe(0);
  return JSON.parse(stdout.toString()) as Report;
}

const FIXTURES: readonly (readonly [string, Readonly<Record<string, string>>, Partial<Project>])[] = [
  [
    "Vite",
    {
      "package.json": JSON.stringify(PACKAGE),
      "vite.config.ts": "export default {};",
      "index.html": '<div id="app"></div><script type="module" src="/src/start.tsx"></script>',
      "src/start.tsx": "run();",
    },
    {
      framework: "Vite",
      knownBy: "vite.config.ts",
      folder: "public",
      notes: [expect.stringContaining("@agarose/sw/virtual")],
      edits: [
        expect.objectContaining({ path: "vite.config.ts", state: "add" }),
        expect.objectContaining({
          path: "src/start.tsx",
          state: "add",
          lines: ['import { register } from "virtual:agarose";', "await register();"],
        }),
      ],
    },
  ],
  [
    "Vite with a folder of its own for static files",
    { "vite.config.js": 'export default { publicDir: "assets" };', "package.json": JSON.stringify(PACKAGE) },
    { framework: "Vite", folder: "assets" },
  ],
  [
    "Next.js with the app router",
    {
      "package.json": JSON.stringify({ dependencies: { ...PACKAGE.dependencies, next: "16" } }),
      "src/app/layout.tsx": "export default function Layout() {}",
    },
    {
      framework: "Next.js",
      knownBy: "package.json",
      folder: "public",
      notes: [],
      edits: [
        expect.objectContaining({
          path: "src/app/agarose.tsx",
          state: "new",
          lines: expect.arrayContaining(['"use client";', `  useEffect(() => void register(), []);`]),
        }),
        expect.objectContaining({ path: "src/app/layout.tsx", state: "add" }),
      ],
    },
  ],
  [
    "Next.js with the pages router",
    {
      "package.json": JSON.stringify(PACKAGE),
      "next.config.mjs": "export default {};",
      "pages/_app.jsx": "export default ({ Component }) => <Component />;",
    },
    { framework: "Next.js", edits: [expect.objectContaining({ path: "pages/_app.jsx", state: "add" })] },
  ],
  [
    "SvelteKit, with a worker of its own",
    {
      "package.json": JSON.stringify({ devDependencies: { ...PACKAGE.dependencies, "@sveltejs/kit": "3", vite: "8" } }),
      "vite.config.js": "export default {};",
      "src/service-worker.ts": "self.addEventListener('fetch', () => {});",
    },
    {
      framework: "SvelteKit",
      folder: "static",
      edits: [
        expect.objectContaining({ path: "vite.config.js", state: "add" }),
        expect.objectContaining({ path: "src/routes/+layout.svelte", state: "new" }),
      ],
      notes: [expect.stringContaining("src/service-worker.ts")],
    },
  ],
  [
    "plain HTML",
    { "index.html": "<!doctype html><title>Mine</title>", "agarose.config.json": '{"regions":[],"code":"auto"}' },
    {
      framework: "plain HTML",
      folder: ".",
      edits: [
        expect.objectContaining({
          path: "index.html",
          state: "add",
          lines: expect.arrayContaining([`  await register();`]),
        }),
      ],
      notes: [expect.stringContaining("agarose.config.json")],
    },
  ],
];

/** Reads alone: a run of the command builds the worker first. */
const read = (): Promise<Project | undefined> => readProject(root, "/ec/");

test.each(FIXTURES)("%s is known by its files", async (_name, files, found) => {
  await write(files);
  expect(await read()).toMatchObject(found);
});

test.each(FIXTURES)("%s: the guide has the lines that register the worker", async (_name, files) => {
  await write(files);
  const guide = await readFile(new URL("../../../../../docs/guides/web-app.md", import.meta.url), "utf8");
  for (const line of (await read())!.edits.flatMap(({ lines }) => lines)) expect(guide).toContain(line.trim());
});

test.each(["Vite", "plain HTML"])(
  "%s: a dry run writes nothing, and init leaves every file of the app",
  async (framework) => {
    const [, files, found] = FIXTURES.find(([name]) => name === framework)!;
    await write({ ...files, "agarose.config.json": CONFIG });
    const before = await all();

    const planned = await init("--dry-run");
    expect(planned).toMatchObject({ dryRun: true, project: { edits: found.edits } });
    expect(await all()).toEqual(before);

    const done = await init();
    expect(done).toEqual({ ...planned, dryRun: false });
    const after = await all();
    expect(after).toMatchObject(before);
    const made = Object.keys(after).filter((path) => !(path in before));
    expect(made.toSorted()).toEqual(done.files.map(({ path }) => path).toSorted());
    // The plugin of Vite serves the worker.
    if (framework === "Vite") expect(made).toEqual([join(found.folder!, "agarose.json")]);
    else expect(made).toContain(join(found.folder!, "agarose-sw.js"));
  },
);

const CONFIG = JSON.stringify({
  regions: [{ name: "dublin", provider: "a", endpoint: "https://s3.dublin.test", bucket: "chunks" }],
  code: { k: 1, m: 0 },
  survive: { regions: 0, providers: 0 },
  unsigned: true,
});

test("lines that are there already are not asked for again", async () => {
  await write({
    "package.json": JSON.stringify(PACKAGE),
    "vite.config.js": 'import { agarose } from "@agarose/sw/vite";\nexport default { plugins: [agarose()] };',
    "src/main.ts": 'import { register } from "virtual:agarose";',
  });
  const { edits, notes } = (await read())!;
  expect([edits.map(({ state }) => state), notes]).toEqual([["done", "done"], []]);
});

test("notes name a missing package, and a plugin with a worker of its own", async () => {
  await write({ "package.json": '{"devDependencies":{"vite":"8","vite-plugin-pwa":"1"}}' });
  expect((await read())!.notes).toEqual([
    expect.stringContaining("lacks @agarose/sw"),
    expect.stringContaining("vite-plugin-pwa"),
  ]);
});

test("a folder that is not the project's gets the files and the lines for any page", async () => {
  await write({ "package.json": '{"devDependencies":{"vite":"8"}}' });
  const { stdout } = await runAgarose(["init", "elsewhere", "--dry-run"], root);
  expect(stdout.toString()).toMatch(/^would be written +elsewhere\/agarose-sw\.js$/m);
  expect(stdout.toString()).toContain(`await register();`);
  expect(stdout.toString()).not.toContain("vite");
});

test("another prefix is in the lines of every framework", async () => {
  await write({ "vite.config.js": "" });
  const { stdout } = await runAgarose(["init", "--dry-run", "--prefix", "/media/"], root);
  expect(stdout.toString()).toContain('await register({ prefix: "/media/" });');
  expect(stdout.toString()).toMatch(/^add to vite\.config\.js/m);
});

test("a package.json that is no JSON shows nothing, and stays", async () => {
  await write({ "package.json": "{" });
  expect(await read()).toBeUndefined();
});

test("--dry-run is for the files of an app", async () => {
  for (const other of ["--worker", "--remove"]) {
    expect((await runAgarose(["init", "--dry-run", other], root)).code).toBe(2);
  }
});
