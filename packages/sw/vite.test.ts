/** The Vite plugin in an app as small as it gets, built and served. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build, createServer, type InlineConfig } from "vite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { checkWorkerFile } from "./src/page/worker-file.ts";
import { agarose } from "./vite.ts";

const CONFIG = { pops: [{ name: "p", url: "https://p.test" }], unsigned: true };

let root: string;

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "agarose-vite-"));
  await mkdir(join(root, "src"));
  await writeFile(join(root, "index.html"), '<!doctype html><script type="module" src="/src/main.js"></script>');
  await writeFile(join(root, "src/main.js"), "document.title = 'App';");
});

afterEach(() => rm(root, { recursive: true, force: true }));

function appWith(options: Parameters<typeof agarose>[0], more: InlineConfig = {}): InlineConfig {
  return { root, configFile: false, logLevel: "silent", plugins: [agarose(options)], ...more };
}

test("a built app has the worker's files and the configuration at its root", async () => {
  await build(appWith({ config: CONFIG }));
  const names = await readdir(join(root, "dist"));
  expect(names.filter((name) => name.startsWith("agarose")).toSorted()).toEqual([
    "agarose-codec.js",
    "agarose-codec.js.map",
    "agarose-sw.js",
    "agarose-sw.js.map",
    "agarose.json",
  ]);
  expect(JSON.parse(await readFile(join(root, "dist/agarose.json"), "utf8"))).toEqual(CONFIG);
  const script = await readFile(join(root, "dist/agarose-sw.js"));
  const served = async (): Promise<Response> =>
    new Response(script, { headers: { "content-type": "text/javascript" } });
  await expect(checkWorkerFile("/agarose-sw.js", served)).resolves.toBeUndefined();
});

test.each(["/", "/app/"])(
  "the development server below %s sends the same, and its own page for the rest",
  async (base) => {
    const server = await createServer(appWith({ config: CONFIG }, { base, server: { port: 0, host: "127.0.0.1" } }));
    try {
      await server.listen();
      const { port } = server.httpServer!.address() as AddressInfo;
      const origin = `http://127.0.0.1:${port}${base}`;
      await expect(checkWorkerFile(`${origin}agarose-sw.js?config=/agarose.json`, fetch)).resolves.toBeUndefined();
      expect(await (await fetch(`${origin}agarose.json`)).json()).toEqual(CONFIG);
      expect((await fetch(origin, { headers: { accept: "text/html" } })).headers.get("content-type")).toContain("html");
    } finally {
      await server.close();
    }
  },
);

test.each([
  [{ config: { ...CONFIG, offline: { bytes: 1 } } }, "agarose-sw.offline.js"],
  [{ config: { ...CONFIG, encryption: [{ prefix: "a/", secrets: [] }] } }, "agarose-sw.encryption.js"],
  [{ config: CONFIG, worker: "agarose-sw.dev.js" }, "agarose-sw.dev.js"],
])("the one worker is what the configuration needs, or the option names: %j", async (options, worker) => {
  await build(appWith(options));
  const names = await readdir(join(root, "dist"));
  expect(names.filter((name) => /^agarose-sw.*js$/.test(name))).toEqual([worker]);
});

test("`register` of virtual:agarose has the addresses below the base, and the prefix", async () => {
  const plugin = agarose({ config: { ...CONFIG, prefix: "/media/", offline: { bytes: 1 } } });
  await mkdir(join(root, "node_modules/@agarose/sw"), { recursive: true });
  await writeFile(
    join(root, "node_modules/@agarose/sw/package.json"),
    '{"name":"@agarose/sw","main":"index.js","type":"module"}',
  );
  await writeFile(
    join(root, "node_modules/@agarose/sw/index.js"),
    "export const register = (own) => (globalThis.asked = own);",
  );
  await writeFile(join(root, "src/main.js"), 'import { register } from "virtual:agarose"; register({ scope: "/" });');
  await build(appWith({}, { base: "/app/", plugins: [plugin], build: { modulePreload: false } }));
  const [script] = await readdir(join(root, "dist/assets"));
  await import(join(root, "dist/assets", script!));
  expect((globalThis as { asked?: object }).asked).toEqual({
    worker: "/app/agarose-sw.offline.js",
    config: "/app/agarose.json",
    prefix: "/media/",
    scope: "/",
  });
});

test("a worker that does not exist is refused with those that do", () => {
  expect(() => agarose({ worker: "sw.js" })).toThrow(
    expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining("agarose-sw.offline.js") }),
  );
});

test("without a configuration none is written", async () => {
  await build(appWith({}));
  expect(await readdir(join(root, "dist"))).not.toContain("agarose.json");
});

test("a configuration that is wrong is refused before anything is built", () => {
  expect(() => agarose({ config: { pops: [] } })).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
});
