/** The drop-in files as they are released: built once, parsed, and held to their size. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import vm from "node:vm";
import { javascriptCodec } from "@agarose/ec-wasm";
import type { RowsDecoder } from "@agarose/ec-wasm/engine";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { buildServiceWorker, type BuiltFile } from "./build.ts";
import { FakeScope } from "./test/fake-scope.ts";

/** Gzipped, without the WebAssembly but with the first line, in bytes. */
const SCRIPT_GZIP_BYTES_MAX: Readonly<Record<string, number>> = {
  "agarose-sw.js": 15_000,
  "agarose-sw.offline.js": 16_080,
  "agarose-decoder.js": 400,
  "agarose.js": 23_200,
  "agarose-overlay.js": 2_350,
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
  const withWasm = files.filter(({ gzipBytes, scriptGzipBytes }) => gzipBytes > 1.5 * scriptGzipBytes);
  expect(withWasm.map(({ path }) => basename(path))).toEqual(["agarose-sw.js", "agarose-sw.offline.js"]);
});

test.each([
  ["agarose-sw.js", []],
  ["agarose-sw.offline.js", []],
  ["agarose-decoder.js", []],
  ["agarose.js", ["createClient", "fetchObject", "logReads", "onRead", "preload", "register"]],
  ["agarose-overlay.js", ["showOverlay"]],
])("%s is a module that imports nothing and exports what pages use", async (name, exported) => {
  const path = join(folder, name);
  const { metafile } = await build({ entryPoints: [path], bundle: true, write: false, metafile: true, format: "esm" });
  const [parsed] = Object.values(metafile.outputs);
  expect(parsed).toMatchObject({ imports: [], exports: expect.arrayContaining(exported) });
});

const CONFIG = { pops: [{ name: "p", url: "https://p.test" }] };

interface Running extends FakeScope {
  agarose?: (config: object) => void;
  agaroseDecoder?: RowsDecoder;
}

/** Runs a file as a classic script in a scope of its own, registered at `href`. */
async function runClassic(name: string, href: string, more: object = {}): Promise<Running> {
  const fetch = async (): Promise<Response> => Response.json(CONFIG);
  const scope: Running = Object.assign(new FakeScope(), { location: new URL(href) });
  const globals = { URL, Response, AbortController, AbortSignal, TextEncoder, Uint8Array, Blob, fetch, atob, console };
  const platform = {
    ...globals,
    DecompressionStream,
    BroadcastChannel: FakeChannel,
    WebAssembly,
    performance,
    ...more,
  };
  // The file sees the scope as its global object.
  const context = vm.createContext(
    Object.assign(scope, platform, { addEventListener: scope.addEventListener.bind(scope) }),
  );
  const before = Object.keys(scope);
  vm.runInContext(await readFile(join(folder, name), "utf8"), context);
  const added = Object.keys(scope).filter((key) => !before.includes(key));
  expect(added, "all that is global of it").toEqual([name === "agarose-decoder.js" ? "agaroseDecoder" : "agarose"]);
  return scope;
}

class FakeChannel {
  postMessage(): void {}
}

test.each(["agarose-sw.js", "agarose-sw.offline.js"])("%s serves what its URL names, as a worker", async (name) => {
  const scope = await runClassic(name, `https://app.test/${name}?config=/agarose.json`);
  expect(await scope.request("/ec/%FF")).toMatchObject({ status: 400 });
  expect(await scope.request("/other")).toBeUndefined();
});

test("where there is no WebAssembly it imports the decoder while it is installed", async () => {
  const importScripts = vi.fn<(url: string) => void>();
  const url = "https://app.test/agarose-sw.js?config=/agarose.json";
  const scope = await runClassic("agarose-sw.js", url, { WebAssembly: undefined, importScripts });
  expect(importScripts).not.toHaveBeenCalled();
  await scope.fire("install");
  expect(importScripts.mock.calls).toEqual([["agarose-decoder.js"]]);
});

test("without WebAssembly and without the decoder it is not installed", async () => {
  const importScripts = (): never => {
    throw new DOMException("failed to load", "NetworkError");
  };
  const url = "https://app.test/agarose-sw.js?config=/agarose.json";
  const scope = await runClassic("agarose-sw.js", url, { WebAssembly: undefined, importScripts });
  await expect(scope.fire("install")).rejects.toMatchObject({ name: "NetworkError" });
});

test("the decoder decodes what was lost", async () => {
  const { agaroseDecoder } = await runClassic("agarose-decoder.js", "https://app.test/my-worker.js");
  const data = [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5, 255)];
  const parity = javascriptCodec().encode(data, [2, 3]);
  expect(agaroseDecoder!([3, 2], parity.toReversed(), [1, 0])).toEqual(data.toReversed());
});

test("the file waits for the call of a worker that imports it, whatever that one's query says", async () => {
  const scope = await runClassic("agarose-sw.js", "https://app.test/my-worker.js?config=/mine.json");
  expect(await scope.request("/ec/%FF")).toBeUndefined();
  scope.agarose!({ prefix: "/media/", ...CONFIG });
  expect(await scope.request("/media/%FF")).toMatchObject({ status: 400 });
});
