/** Every package as npm would publish it: its map of exports, in a fresh Node project, and in a fresh Vite app. */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { build } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import type { PackedPackage } from "../../scripts/release/packages.ts";
import { SIZES_PAGE, sizeRows } from "../../scripts/release/size-table.ts";
import { read, sha256 } from "../fixtures/app.ts";
import { olderNode, pack, Project, ROOT, versionOf } from "./packed.ts";
import { expect, test } from "../fixtures/test.ts";

const PACKAGES = [
  "@agarose/core",
  "@agarose/solver",
  "@agarose/ec-wasm",
  "@agarose/s3-server",
  "@agarose/storage",
  "@agarose/sw",
  "@agarose/worker",
  "@agarose/pop",
  "@agarose/dev-world",
  "agarose",
  "@agarose/scrubber",
  "create-agarose",
];

/** A bucket that no test asks. */
const REGION = {
  name: "r0",
  provider: "p",
  endpoint: "http://127.0.0.1:9",
  bucket: "bucket",
  url: "http://127.0.0.1:9/bucket",
};

let packed: readonly PackedPackage[];

test.beforeAll(async () => {
  test.setTimeout(1_200_000);
  packed = await pack();
  expect(packed.map(({ name }) => name)).toEqual(PACKAGES);
});

for (const name of PACKAGES) {
  test(`publint and attw find nothing wrong with ${name}`, async () => {
    const { folder, tarball } = packed.find((candidate) => candidate.name === name)!;
    const { messages, pkg } = await publint({ pkgDir: folder, level: "suggestion", strict: true });
    expect(messages.map((message) => formatMessage(message, pkg))).toEqual([]);

    const analysis = await checkPackage(createPackageFromTarballData(await readFile(tarball)), {
      // Not modules of JavaScript: the bundler gives them their type.
      excludeEntrypoints: [/wasm$/, /agarose-(sw|codec)/],
    });
    if (!analysis.types) throw new Error(`${name} has no types`);
    // The packages are ES modules, so what CommonJS and Node 10 make of them is not asked.
    const asked = ["node16-esm", "bundler"];
    const isAsked = (problem: object): boolean =>
      "resolutionKind" in problem
        ? asked.includes(String(problem.resolutionKind))
        : !("resolutionOption" in problem && problem.resolutionOption === "node10");
    expect(analysis.problems.filter(isAsked)).toEqual([]);
    expect(Object.keys(analysis.entrypoints), "all of them were looked at").toContain(".");
  });
}

test("the page of versions has the size of every package, within a tenth or 5 kB", async () => {
  const rows = sizeRows(await readFile(join(ROOT, SIZES_PAGE), "utf8"));
  expect(rows.map(({ name }) => name)).toEqual(PACKAGES);
  const near = (kb: number, bytes: number): boolean => Math.abs(kb - bytes / 1000) <= Math.max(5, 0.1 * kb);
  const off = packed.filter(({ name, packedBytes, unpackedBytes }) => {
    const row = rows.find((one) => one.name === name)!;
    return !near(row.packedKb, packedBytes) || !near(row.unpackedKb, unpackedBytes);
  });
  expect(off, "npm run pack -- --sizes rewrites them").toEqual([]);
});

test.describe("installed from tarballs", () => {
  let project: Project;

  test.beforeAll(async () => {
    project = await Project.create({});
    const offline = await project.install(packed);
    test.skip(offline !== undefined, offline);
  });

  test.afterAll(() => rm(project.folder, { recursive: true, force: true }));

  test("a Node program codes, loses and decodes, plans and solves", async () => {
    await project.write({ "program.js": PROGRAM });
    expect(JSON.parse(await project.run("node", "program.js"))).toEqual({
      kernel: expect.stringMatching(/relaxed|simd|scalar/),
      recovered: [1, 2, 3],
      threads: 3,
      key: "KEY_INVALID",
      weight: 2,
    });
  });

  test("a bundled worker keeps the files that it imports for what they set", async () => {
    const worker = 'import "@agarose/sw/agarose-codec.js"; import "@agarose/sw/agarose-sw.js"; agarose({ pops: [] });';
    const { outputFiles, warnings } = await build({
      stdin: { contents: worker, resolveDir: project.folder },
      bundle: true,
      write: false,
      format: "iife",
    });
    expect(warnings).toEqual([]);
    expect(outputFiles[0]!.text).toContain("agaroseCodec");
    expect(outputFiles[0]!.contents.length, "the worker's WebAssembly is there too").toBeGreaterThan(50_000);
  });

  test("the Worker of the guide on healing bundles, with WebAssembly beside it", async () => {
    const example = join(ROOT, "packages/scrubber/example/scrubber.ts");
    const config = { code: { k: 1, m: 0 }, unsigned: true, regions: [REGION] };
    await project.write({
      "scrubber.ts": await readFile(example, "utf8"),
      "agarose.config.json": JSON.stringify(config),
    });
    const { outputFiles, warnings } = await build({
      entryPoints: [join(project.folder, "scrubber.ts")],
      bundle: true,
      write: false,
      format: "esm",
      conditions: ["workerd", "worker", "browser"],
      external: ["cloudflare:*", "node:*", "*.wasm"],
    });
    expect(warnings).toEqual([]);
    const [{ text } = { text: "" }] = outputFiles;
    expect(text).toContain("relaxed.wasm");
    expect(text, "no AWS SDK").not.toContain("S3ServiceException");
  });

  test("npx agarose runs and writes the files of a web app, with types for the page's script", async () => {
    expect(await project.run("npx", "agarose", "--help")).toContain("Keep serving files");
    await project.run("npx", "agarose", "init", "public");
    for (const file of ["agarose-sw.js", "agarose-codec.js", "agarose.js", "agarose.d.ts", "agarose.json"]) {
      expect((await project.read(`public/${file}`)).length, file).toBeGreaterThan(0);
    }
    await project.write({ "page.ts": PAGE, "tsconfig.json": tsconfig(["page.ts"]) });
    await project.run(join(ROOT, "node_modules/.bin/tsc"), "-p", ".");
  });

  test("the steps of the Dockerfile make a PoP that starts and is healthy", async () => {
    test.setTimeout(600_000);
    const dockerfile = await project.read("node_modules/@agarose/pop/Dockerfile");
    const config = { code: { k: 1, m: 0 }, unsigned: true, regions: [REGION] };
    await project.write({ "agarose.config.json": JSON.stringify(config) });
    // No builder of images is here. The tarballs of package.json are found from a folder at the same depth.
    const image = await Project.create({});
    const started: ChildProcess[] = [];
    try {
      const copied = [...dockerfile.matchAll(/^COPY (.*) \.\/$/gm)].flatMap(([, names]) => names!.split(" "));
      for (const name of copied) await image.write({ [name]: await project.read(name) });
      expect(dockerfile).toContain("RUN npm ci --omit=dev ");
      await image.run("npm", "ci", "--omit=dev", "--no-audit", "--no-fund", "--prefer-offline");
      const { stdout } = await promisify(execFile)("npm", ["ls", "--omit=dev", "--json"], { cwd: image.folder });
      const { dependencies } = JSON.parse(stdout) as { dependencies: Record<string, { resolved: string }> };
      expect(dependencies["agarose"]!.resolved).toMatch(/^file:.*\.tgz$/);
      const listed = [/^ENTRYPOINT (\[.*\])$/m, /^CMD (\[.*\])$/m].map((line) => line.exec(dockerfile)![1]!);
      const [, file, ...args] = listed.flatMap((list) => JSON.parse(list) as string[]);
      const own = args.map(
        (arg) => ({ "/data": join(image.folder, "data"), "0.0.0.0:8787": "127.0.0.1:0" })[arg] ?? arg,
      );
      const child = spawn(process.execPath, [file!, ...own, "home", "--json"], {
        cwd: image.folder,
        env: { PATH: process.env["PATH"] },
        stdio: ["ignore", "pipe", "inherit"],
      });
      started.push(child);
      const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      const { url } = JSON.parse(line) as { url?: string };
      if (url === undefined) throw new Error(line);
      const [, check] = /^HEALTHCHECK .* CMD (\[.*\])$/m.exec(dockerfile)!;
      const [, flag, script] = JSON.parse(check!) as [string, string, string];
      expect(script).toContain("http://127.0.0.1:8787");
      await image.run("node", flag, script.replace("http://127.0.0.1:8787", url));
    } finally {
      for (const child of started) {
        if (child.exitCode !== null) continue;
        const exited = once(child, "exit");
        child.kill();
        await exited;
      }
      await rm(image.folder, { recursive: true, force: true });
    }
  });

  test("a world on this machine says what it needs, and with that it serves what was put", async () => {
    const without = await project
      .run("npx", "agarose", "dev")
      .catch((error: { code: number; stderr: string }) => error);
    expect(without).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/^USAGE: .* needs (miniflare|wrangler|esbuild): npm install --save-dev /m),
    });

    await project.link("miniflare", "wrangler", "esbuild");
    const child = spawn(process.execPath, ["node_modules/agarose/bin/agarose.js", "dev", "--json", "--scale", "0"], {
      cwd: project.folder,
      stdio: ["ignore", "pipe", "ignore"],
    });
    try {
      const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
      const { config, pops } = JSON.parse(line) as { config: string; pops: { url: string }[] };
      await project.run("npx", "agarose", "--config", config, "put", "package.json", "--key", "a.json");
      const response = await fetch(`${pops[0]!.url}/o/a.json`);
      expect(await response.text()).toBe(await project.read("package.json"));
    } finally {
      child.kill();
      await once(child, "exit");
    }
  });

  test("init --worker writes what Wrangler builds: PoPs with places, and one Worker everywhere", async () => {
    await project.link("wrangler");
    await project.write({ "agarose.config.json": JSON.stringify(workerConfig("fra", "lhr")) });
    await project.run("npx", "agarose", "init", "--worker", "--analytics");
    const dryRun = JSON.parse(await project.run("npx", "agarose", "deploy", "--dry-run", "--json")) as {
      steps: { step: { kind: string; pop: string } }[];
    };
    expect(dryRun.steps.map(({ step }) => step.pop)).toEqual(expect.arrayContaining(["fra", "lhr"]));
    const built = await project.run("npx", "wrangler", "deploy", "--dry-run", "--env", "lhr", "--outdir", "built");
    for (const binding of ["env.CHUNKS", "env.POP_STATE", "env.ANALYTICS", "env.MISS_LIMIT"]) {
      expect(built).toContain(binding);
    }
    expect((await project.read("built/index.js")).length, "the Worker with what it imports").toBeGreaterThan(100_000);

    await rm(join(project.folder, "wrangler.jsonc"));
    await project.write({ "agarose.config.json": JSON.stringify(workerConfig("all")) });
    await project.run("npx", "agarose", "init", "--worker", "--everywhere");
    expect(await project.read("wrangler.jsonc")).toContain('"EVERYWHERE": "true"');
    await project.run("npx", "wrangler", "deploy", "--dry-run", "--env", "all", "--outdir", "built");
  });

  test("a Node that is too old says which one is needed", async () => {
    const node = await olderNode(22);
    test.skip(node === undefined, "there is no Node below 22 on this machine");
    const env = { PATH: "/nowhere" };
    const failure = await promisify(execFile)(node!, ["node_modules/agarose/bin/agarose.js", "ls"], {
      cwd: project.folder,
      env,
    }).catch((error: { code: number; stderr: string }) => error);
    expect(failure).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^USAGE: agarose needs Node 22\.19 or newer, this is v\d+.*: install it from https:\/\/nodejs\.org\n$/,
      ),
    });
  });
});

/** A configuration with PoPs of these names in Frankfurt. */
function workerConfig(...pops: string[]): object {
  return {
    regions: ["one", "two", "three"].map((name) => ({
      name,
      provider: name,
      endpoint: `https://${name}.example.com`,
      bucket: "ours",
    })),
    code: { k: 2, m: 1 },
    survive: { regions: 1, providers: 1 },
    publicKeys: [`ed25519:${"A".repeat(43)}=`],
    pops: pops.map((name) => ({ name, url: `https://${name}.example.com`, placement: "aws:eu-central-1" })),
  };
}

test("a fresh Vite app with the plugin builds, type-checks, and reads an object", async ({
  context,
  world,
  putRandom,
}) => {
  const content = await putRandom("packed/cat.bin", 1_500_000);
  const config = await (await fetch(`${world.app}agarose.json`)).text();
  const project = await Project.create({
    "index.html": '<!doctype html><title>An app</title><script type="module" src="/main.ts"></script>',
    "main.ts": MAIN,
    "vite.config.js": `import { agarose } from "@agarose/sw/vite";\nexport default { plugins: [agarose({ config: ${config} })] };`,
    "tsconfig.json": tsconfig(["main.ts"], ["@agarose/sw/virtual"]),
  });
  const wanted = packed.filter(({ name }) => ["@agarose/core", "@agarose/ec-wasm", "@agarose/sw"].includes(name));
  const offline = await project.install(wanted, `vite@${await versionOf("vite")}`);
  test.skip(offline !== undefined, offline);

  await project.run(join(ROOT, "node_modules/.bin/tsc"), "-p", ".");
  await project.run("npx", "vite", "build");
  const { server, url } = await preview(project);
  try {
    const page = await context.newPage();
    await page.goto(url);
    await expect(page).toHaveTitle("1500000 bytes by the service worker");
    expect(await read(page, "packed/cat.bin")).toMatchObject({ status: 200, sha256: sha256(content) });
  } finally {
    server.kill();
    await once(server, "exit");
    await rm(project.folder, { recursive: true, force: true });
  }
});

/** Serves what was built, and returns where. */
async function preview(project: Project): Promise<{ server: ChildProcess; url: string }> {
  const vite = join(project.folder, "node_modules/vite/bin/vite.js");
  const server = spawn(process.execPath, [vite, "preview", "--host", "127.0.0.1", "--port", "0"], {
    cwd: project.folder,
    env: { ...process.env, NO_COLOR: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: server.stdout })) {
    const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(line)?.[0];
    if (url) return { server, url };
  }
  throw new Error(`vite preview ended with ${server.exitCode}`);
}

function tsconfig(files: readonly string[], types: readonly string[] = []): string {
  const compilerOptions = {
    target: "ES2022",
    module: "ESNext",
    moduleResolution: "bundler",
    lib: ["ES2024", "DOM", "DOM.AsyncIterable"],
    types,
    strict: true,
    noEmit: true,
  };
  return JSON.stringify({ compilerOptions, files });
}

const PROGRAM = `
import { AgaroseError } from "@agarose/core";
import { parseKey } from "@agarose/core/format";
import { loadCodec } from "@agarose/ec-wasm";
import { createEncoderPool } from "@agarose/ec-wasm/encoder-pool";
import { solveKnapsack } from "@agarose/solver";
import { createClient } from "@agarose/sw";

const codec = await loadCodec();
const data = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5, 6)];
const [parity] = codec.encode(data, [2]);
const [recovered] = codec.reconstruct(2, [{ index: 1, bytes: data[1] }, { index: 2, bytes: parity }], [0]);
const pool = createEncoderPool(1);
const encoded = await pool.encode(new Uint8Array(4 << 20), 2, [2, 3, 4]);
await pool.close();
let key;
try { parseKey(".."); } catch (error) { key = error instanceof AgaroseError ? error.code : String(error); }
createClient({ config: { pops: [{ name: "p", url: "https://p.test" }], regions: [], unsigned: true } });
const solution = solveKnapsack({
  start: Int32Array.of(0, 2),
  weights: Int32Array.of(1, 2),
  values: Float64Array.of(1, 3),
  capacity: 2,
});
console.log(JSON.stringify({ kernel: codec.kernel, recovered: [...recovered], threads: encoded.parity.length, key, weight: solution.weight }));
`;

const PAGE = `
import { register, type Agarose, type ReadEvent } from "./public/agarose.js";
const agarose: Agarose = await register();
agarose.addEventListener("read", ({ data }: MessageEvent<ReadEvent>) => console.log(data.type));
const response: Response = await agarose.fetch("a", { headers: { range: "bytes=0-1" } });
// @ts-expect-error: keys are text
agarose.preload([1]);
console.log(response.status);
`;

const MAIN = `
import { register } from "virtual:agarose";
const agarose = await register();
const response = await agarose.fetch("packed/cat.bin");
const { byteLength } = await response.arrayBuffer();
document.title = \`\${byteLength} bytes by the \${response.headers.has("x-agarose-read") ? "service worker" : "network"}\`;
`;
