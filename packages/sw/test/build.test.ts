/** The drop-in files as they are released: built once, parsed, and held to their size. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import vm from "node:vm";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildServiceWorker, type BuiltFile } from "../build.ts";
import { FakeScope } from "./fake-scope.ts";

/** Gzipped, without the WebAssembly, in bytes. The aim for `agarose-sw.js` is 15,360; this is what holds until it is reached. */
const SCRIPT_GZIP_BYTES_MAX: Readonly<Record<string, number>> = {
  "agarose-sw.js": 15_850,
  "agarose-sw.classic.js": 15_850,
  "agarose-sw.offline.js": 17_000,
  "agarose-sw.offline.classic.js": 17_000,
  "agarose.js": 24_250,
  "agarose-overlay.js": 2_500,
};

let folder: string;
let files: BuiltFile[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-sw-test-"));
  files = await buildServiceWorker(folder, { searches: true });
  // The search for the smallest spelling takes minutes where it has not been made before.
}, 1_200_000);

afterAll(() => rm(folder, { recursive: true, force: true }));

test("all files stay within their size, and only the workers bring WebAssembly", () => {
  expect(files.map(({ path }) => basename(path))).toEqual(Object.keys(SCRIPT_GZIP_BYTES_MAX));
  const tooLarge = files.filter(
    ({ path, scriptGzipBytes }) => scriptGzipBytes > SCRIPT_GZIP_BYTES_MAX[basename(path)]!,
  );
  expect(tooLarge).toEqual([]);
  const withWasm = files.filter(({ gzipBytes, scriptGzipBytes }) => gzipBytes > scriptGzipBytes);
  expect(withWasm.map(({ path }) => basename(path).startsWith("agarose-sw."))).toEqual([true, true, true, true]);
});

test.each([
  ["agarose-sw.js", ["agarose"]],
  ["agarose-sw.offline.js", ["agarose"]],
  ["agarose.js", ["createClient", "fetchObject", "logReads", "onRead", "preload", "register"]],
  ["agarose-overlay.js", ["showOverlay"]],
])("the module %s imports nothing and exports what pages and workers use", async (name, exported) => {
  const path = join(folder, name);
  const { metafile } = await build({ entryPoints: [path], bundle: true, write: false, metafile: true, format: "esm" });
  const [parsed] = Object.values(metafile.outputs);
  expect(parsed).toMatchObject({ imports: [], exports: expect.arrayContaining(exported) });
});

/** Runs the classic file in a scope of its own, registered at `href`. */
async function runClassic(
  href: string,
  name = "agarose-sw.classic.js",
): Promise<FakeScope & { agarose?: (config: object) => void }> {
  const scope = Object.assign(new FakeScope(), { location: { href, origin: new URL(href).origin } });
  const script = await readFile(join(folder, name), "utf8");
  const globals = { URL, Response, AbortController, AbortSignal, TextEncoder, Uint8Array, fetch, Math, console };
  // The file sees the scope as its global object.
  const context = vm.createContext(
    Object.assign(scope, globals, { addEventListener: scope.addEventListener.bind(scope) }),
  );
  vm.runInContext(script, context);
  return scope;
}

test("the classic file serves what its query string says when it is the worker itself", async () => {
  const scope = await runClassic("https://app.test/agarose-sw.classic.js?pops=p=https://p.test");
  expect(await scope.request("/ec/%FF")).toMatchObject({ status: 400 });
  expect(await scope.request("/other")).toBeUndefined();
});

test("the classic file that keeps what was read runs as well", async () => {
  const query = "?pops=p=https://p.test";
  const scope = await runClassic(
    `https://app.test/agarose-sw.offline.classic.js${query}`,
    "agarose-sw.offline.classic.js",
  );
  expect(await scope.request("/ec/%FF")).toMatchObject({ status: 400 });
});

test("the classic file waits for the call of a worker that imports it, whatever that one's query says", async () => {
  const scope = await runClassic("https://app.test/my-worker.js?config=/mine.json");
  expect(await scope.request("/ec/%FF")).toBeUndefined();
  scope.agarose!({ prefix: "/media/", pops: [{ name: "p", url: "https://p.test" }] });
  expect(await scope.request("/media/%FF")).toMatchObject({ status: 400 });
});
