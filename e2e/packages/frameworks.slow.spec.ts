/** The recipes for frameworks: with what `agarose init` prints, installed from tarballs, as built apps. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { LocalWorld } from "@agarose/dev-world/client";
import { NEAR, NEXT } from "../cases/faults.ts";
import { listenToKinds, read, sha256 } from "../fixtures/app.ts";
import { expect, test } from "../fixtures/test.ts";
import { environment, pack, Project, ROOT, versionOf } from "./packed.ts";

const CAT =
  '<svg xmlns="http://www.w3.org/2000/svg" width="320" height="200"><circle cx="160" cy="100" r="90" /></svg>';

interface Framework {
  readonly name: string;
  /** Its folder below e2e/recipes. */
  readonly recipe: string;
  /** Packages from the registry, beside those of Agarose. The versions are those that the recipe was written for. */
  readonly packages: readonly string[];
  readonly build: readonly string[];
  /** Serves the built app at a free port of this machine, and prints where. */
  readonly serve: readonly string[];
  /** Whether its server passes what no worker controls to a PoP. */
  readonly rewrites: boolean;
  /** The region that dies: one for each test, because the PoPs of their world remember. */
  readonly dies: string;
}

const FRAMEWORKS: readonly Framework[] = [
  {
    name: "Next.js",
    recipe: "next",
    packages: ["next@16.4.6", "react@19", "react-dom@19", "typescript@6.0.3", "@types/react@19", "@types/node@24"],
    build: ["npx", "next", "build"],
    serve: ["node_modules/next/dist/bin/next", "start", "--hostname", "127.0.0.1", "--port", "0"],
    rewrites: true,
    dies: NEAR,
  },
  {
    name: "SvelteKit",
    recipe: "sveltekit",
    packages: [
      "@sveltejs/kit@3.2.0",
      "@sveltejs/adapter-static@4.0.1",
      "@sveltejs/vite-plugin-svelte@7",
      "svelte@5",
      "typescript@6.0.3",
    ],
    build: ["npx", "vite", "build"],
    serve: ["node_modules/vite/bin/vite.js", "preview", "--host", "127.0.0.1", "--port", "0"],
    rewrites: false,
    dies: NEXT,
  },
];

interface Edit {
  readonly path: string;
  readonly state: string;
  readonly lines: readonly string[];
}

for (const framework of FRAMEWORKS) {
  test(`${framework.name}: the recipe is what init prints, and the built app reads while a region is down`, async ({
    context,
    world,
    putRandom,
  }) => {
    test.setTimeout(900_000);
    const key = `${framework.recipe}/object`;
    const content = await putRandom(key, 1_500_000);
    await world.put("pictures/cat.svg", new TextEncoder().encode(CAT), { contentType: "image/svg+xml" });
    const project = await Project.create({});
    try {
      const vite = framework.recipe === "next" ? [] : [`vite@${await versionOf("vite")}`];
      const packed = await pack(`npm-${framework.recipe}`);
      const wanted = packed.filter(({ name }) => ["@agarose/core", "@agarose/ec-wasm", "@agarose/sw"].includes(name));
      const offline = await project.install(wanted, ...framework.packages, ...vite);
      test.skip(offline !== undefined, offline);
      const edits = await initialize(project, world);
      await cp(join(ROOT, "e2e/recipes", framework.recipe), project.folder, { recursive: true });
      expect(edits.map(({ state }) => state)).not.toContain("done");
      for (const { path, lines } of edits) {
        const text = await project.read(path);
        for (const line of lines) expect(text, path).toContain(inPlace(line));
      }

      const { server, url } = await serveBuilt(project, framework, world.pops[0]!.url);
      try {
        const page = await context.newPage();
        await page.goto(url);
        if (framework.rewrites) await expect(page.getByAltText("A cat")).toHaveJSProperty("naturalWidth", 320);
        await page.evaluate(() => navigator.serviceWorker.ready.then(() => {}));
        await expect.poll(() => page.evaluate(() => navigator.serviceWorker.controller !== null)).toBe(true);
        await page.reload();
        await expect(page.getByAltText("A cat")).toHaveJSProperty("naturalWidth", 320);
        await world.region(framework.dies).down();
        const kinds = await listenToKinds(page);
        const answer = await read(page, key);
        expect(answer).toMatchObject({ status: 200, sha256: sha256(content) });
        await expect.poll(kinds).toEqual(["degraded"]);
        expect(await world.region(framework.dies).fired()).toBeGreaterThan(0);
      } finally {
        const exited = once(server, "exit");
        server.kill();
        await exited;
      }
    } finally {
      await rm(project.folder, { recursive: true, force: true, maxRetries: 5 });
    }
  });
}

/** Runs `agarose init` in a project that has no file of its own, and returns what it would have its owner write. */
async function initialize(project: Project, world: LocalWorld): Promise<readonly Edit[]> {
  const cli = join(ROOT, "packages/cli/bin/agarose.js");
  const printed = await project.run("node", cli, "--config", world.config, "init", "--json");
  return (JSON.parse(printed) as { project: { edits: Edit[] } }).project.edits;
}

/** In the recipe, the plugin has others beside it. */
function inPlace(line: string): string {
  return line.trim().replace(/^plugins: \[(.*)\],$/, "plugins: [$1");
}

async function serveBuilt(
  project: Project,
  { build, serve, name }: Framework,
  popUrl: string,
): Promise<{ server: ChildProcess; url: string }> {
  const env = { ...environment(), POP_URL: popUrl, NEXT_TELEMETRY_DISABLED: "1" };
  const built = spawn(build[0]!, build.slice(1), { cwd: project.folder, env, stdio: ["ignore", "ignore", "inherit"] });
  const [code] = (await once(built, "exit")) as [number | null];
  if (code !== 0) throw new Error(`the build of ${name} ended with ${code}`);
  const server = spawn(process.execPath, serve, { cwd: project.folder, env, stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: server.stdout })) {
    const url = /http:\/\/127\.0\.0\.1:[1-9]\d*/.exec(line)?.[0];
    if (url) {
      server.stdout.resume();
      return { server, url };
    }
  }
  throw new Error(`the server of ${name} ended with ${server.exitCode}`);
}
