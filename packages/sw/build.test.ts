/** The drop-in files as they are published: built once, run, and held to their budget. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { SourceMap, type SourceMapping } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import vm from "node:vm";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { buildServiceWorker, builtFiles, sizeTable, type BuiltFile } from "./build.ts";
import type { CodecScope } from "./src/worker/imported-codec.ts";
import { FakeScope } from "./test/fake-scope.ts";

/** The budget of each file of a first visit, coded as CDNs send it to browsers. */
const BROTLI_BYTES = { "agarose-sw.js": 24_600, "agarose-codec.js": 8_000 };
/**
 * The reader may be larger by this share, so that a small change need not begin with making room. Rows, which keep
 * bytes flowing while a region is down, are 0.4 kB of it, and names of keys that paths cannot hold 0.3 kB.
 */
const SLACK = { "agarose-sw.js": 0.1, "agarose-codec.js": 0 };

let folder: string;
let files: BuiltFile[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-sw-test-"));
  files = await buildServiceWorker(folder);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test.each(["agarose-sw.js", "agarose-codec.js"] as const)("%s stays within the budget", (name) => {
  const { brotliBytes } = files.find(({ path }) => basename(path) === name)!;
  expect(brotliBytes).toBeLessThanOrEqual(BROTLI_BYTES[name] * (1 + SLACK[name]));
});

test("the README's table says what each feature costs, to 5%", async () => {
  const readme = await readFile(new URL("README.md", import.meta.url), "utf8");
  const rowsOf = (text: string): [string, number, number][] =>
    [...text.matchAll(/^\| (.*?) +\| +(\d+) \| +(\d+) \|$/gm)].map(([, what, gzip, brotli]) => [
      what!,
      Number(gzip),
      Number(brotli),
    ]);
  const [expected, written] = [rowsOf(await sizeTable()), rowsOf(readme)];
  expect(written.map(([what]) => what)).toEqual(expected.map(([what]) => what));
  expect(expected.length).toBeGreaterThan(5);
  for (const [i, [what, ...sizes]] of expected.entries()) {
    for (const [j, bytes] of sizes.entries()) {
      expect(Math.abs((written[i]![j + 1] as number) / bytes - 1), what).toBeLessThan(0.05);
    }
  }
});

test("every file has a source map that names files of the repository and holds their text", async () => {
  for (const { path } of files) {
    const name = basename(path);
    expect(await readFile(path, "utf8")).toMatch(new RegExp(`\\n//# sourceMappingURL=${name}\\.map\\n$`));
    const map = JSON.parse(await readFile(`${path}.map`, "utf8")) as SourceMapText;
    expect(map.file).toBe(name);
    expect(map.sources.filter((source) => !/^agarose\/packages\/[\w-]+\//.test(source))).toEqual([]);
    expect(map.sourcesContent).toHaveLength(map.sources.length);
  }
});

test("a position in the minified worker maps to the line of its source", async () => {
  const script = await readFile(join(folder, "agarose-sw.js"), "utf8");
  const map = new SourceMap(JSON.parse(await readFile(join(folder, "agarose-sw.js.map"), "utf8")));
  const at = script.indexOf("importScripts(");
  const line = script.slice(0, at).split("\n").length - 1;
  const found = map.findEntry(line, at - script.lastIndexOf("\n", at) - 1) as Partial<SourceMapping>;
  expect(found.originalSource).toBe("agarose/packages/sw/src/worker/imported-codec.ts");
  const source = await readFile(new URL("src/worker/imported-codec.ts", import.meta.url), "utf8");
  expect(source.split("\n")[found.originalLine!]).toContain("importScripts(");
});

test("a second build has the same bytes", async () => {
  for (const [name, contents] of await builtFiles()) {
    expect(Buffer.compare(contents, await readFile(join(folder, name))), name).toBe(0);
  }
});

test("production workers have codes only, the development worker and the page's module have messages", async () => {
  const message = "is not JSON in UTF-8";
  const withMessage = await Promise.all(
    files.map(async ({ path }) => ((await readFile(path, "utf8")).includes(message) ? [basename(path)] : [])),
  );
  expect(withMessage.flat()).toEqual(["agarose-sw.dev.js", "agarose-client.js"]);
});

test.each([
  ["agarose-sw.js", []],
  ["agarose-sw.offline.js", []],
  ["agarose-sw.encryption.js", []],
  ["agarose-sw.dev.js", []],
  ["agarose-sw.remove.js", []],
  ["agarose-codec.js", []],
  ["agarose.js", ["errorOf", "register", "unregister"]],
  ["agarose-client.js", ["createClient", "errorOf"]],
  ["agarose-devtools.js", ["logReads", "onRead", "showOverlay", "summarized", "totalsOf"]],
  ["agarose-upload.js", ["putObject"]],
])("%s is a module that imports nothing and exports what pages use", async (name, exported) => {
  const bundle = await rolldown({ input: join(folder, name) });
  const { output } = await bundle.generate({ format: "esm" });
  await bundle.close();
  expect(output[0].imports).toEqual([]);
  expect(output[0].exports).toEqual(expect.arrayContaining(exported));
});

const CONFIG = { pops: [{ name: "p", url: "https://p.test" }], unsigned: true };

interface SourceMapText {
  readonly file: string;
  readonly sources: readonly string[];
  readonly sourcesContent: readonly string[];
}

interface Running extends FakeScope {
  agarose?: (config: object) => void;
  agaroseCodec?: CodecScope["agaroseCodec"];
}

/** Runs a file as a classic script in its own scope, registered at `href`. */
async function runClassic(name: string, href: string, more: object = {}): Promise<Running> {
  const fetch = async (): Promise<Response> => Response.json(CONFIG);
  const scope: Running = Object.assign(new FakeScope(), { location: new URL(href) });
  const timers = { setTimeout, clearTimeout };
  const globals = { URL, Response, AbortController, AbortSignal, TextEncoder, Uint8Array, Blob, fetch, atob, console };
  const platform = {
    ...globals,
    ...timers,
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
  expect(added, "all that is global of it").toEqual([name === "agarose-codec.js" ? "agaroseCodec" : "agarose"]);
  return scope;
}

class FakeChannel {
  postMessage(): void {}
}

test.each(["agarose-sw.js", "agarose-sw.offline.js", "agarose-sw.encryption.js", "agarose-sw.dev.js"])(
  "%s serves what its URL names, as a worker",
  async (name) => {
    const scope = await runClassic(name, `https://app.test/${name}?config=/agarose.json`);
    expect(await scope.request("/ec/%FF")).toMatchObject({ status: 400 });
    expect(await scope.request("/other")).toBeUndefined();
  },
);

test("the removing worker takes over, deletes what Agarose stored, and unregisters itself", async () => {
  const deleted: string[] = [];
  const caches = {
    delete: async (cache: string) => {
      deleted.push(cache);
      throw new DOMException("the storage is locked", "InvalidStateError");
    },
  };
  const unregister = vi.fn<() => Promise<boolean>>(async () => true);
  const more = { caches, registration: { active: null, unregister } };
  const scope = await runClassic("agarose-sw.remove.js", "https://app.test/agarose-sw.js?config=/agarose.json", more);
  await scope.fire("install");
  expect(scope.calls).toEqual(["skipWaiting"]);
  await scope.fire("activate");
  expect(deleted).toEqual(["agarose", "agarose-offline"]);
  expect(unregister).toHaveBeenCalledOnce();
  expect(await scope.request("/ec/a")).toBeUndefined();
});

test("the removing file leaves a worker that imports it registered", async () => {
  const unregister = vi.fn<() => Promise<boolean>>(async () => true);
  const scope = await runClassic("agarose-sw.remove.js", "https://app.test/my-worker.js", {
    registration: { active: null, unregister },
  });
  scope.agarose!(CONFIG);
  await scope.fire("install");
  await scope.fire("activate");
  expect([scope.calls, unregister.mock.calls]).toEqual([[], []]);
});

test("it imports its codec while it is installed, and not before", async () => {
  const importScripts = vi.fn<(url: string) => void>();
  const url = "https://app.test/agarose-sw.js?config=/agarose.json";
  const { agaroseCodec } = await runClassic("agarose-codec.js", url);
  const scope = await runClassic("agarose-sw.js", url, {
    importScripts: importScripts.mockImplementation(() => void Object.assign(scope, { agaroseCodec })),
  });
  expect(importScripts).not.toHaveBeenCalled();
  await scope.fire("install");
  expect(importScripts.mock.calls).toEqual([["agarose-codec.js"]]);
});

test.each([
  ["is missing", undefined],
  ["is of another version", 0],
  ["is another script", undefined, true],
])(
  "a worker whose codec %s is not installed, and its error names the file",
  async (_what, version, isLoaded = version !== undefined) => {
    const url = "https://app.test/agarose-sw.js?config=/agarose.json";
    const importScripts = vi.fn<() => void>(() => {
      if (!isLoaded) throw new DOMException("failed to load", "NetworkError");
      if (version !== undefined)
        Object.assign(scope, { agaroseCodec: { version, load: async () => ({ reconstruct: () => [] }) } });
    });
    const scope = await runClassic("agarose-sw.js", url, { importScripts });
    await expect(scope.fire("install")).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      details: { file: "agarose-codec.js", version, expected: 1 },
    });
    expect(importScripts).toHaveBeenCalledOnce();
  },
);

test("the file waits for the call of a worker that imports it, whatever that one's query says", async () => {
  const scope = await runClassic("agarose-sw.js", "https://app.test/my-worker.js?config=/mine.json");
  expect(await scope.request("/ec/%FF")).toBeUndefined();
  scope.agarose!({ prefix: "/media/", ...CONFIG });
  expect(await scope.request("/media/%FF")).toMatchObject({ status: 400 });
});
