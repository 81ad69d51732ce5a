/** The decoder of the drop-in files, bundled as they bundle it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import vm from "node:vm";
import type { Decoder } from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";
import * as fc from "fast-check";
import { rolldown } from "rolldown";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { builtFiles, wasmAsText } from "../../build.ts";

type Inlined = { inlinedDecoder(): Promise<Decoder> };

let folder: string;
let inlined: Inlined;
/** `agarose-decoder.js`. */
let imported: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-decoder-test-"));
  const outfile = join(folder, "decoder.mjs");
  const source = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
  const bundle = await rolldown({ input: source("inlined-decoder.ts"), platform: "browser", plugins: [wasmAsText()] });
  await bundle.write({ file: outfile, format: "esm" });
  inlined = (await import(/* @vite-ignore */ pathToFileURL(outfile).href)) as Inlined;
  imported = new TextDecoder().decode((await builtFiles()).get("agarose-decoder.js"));
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  Reflect.deleteProperty(globalThis, "agaroseDecoder");
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/**
 * Where the given calls of `WebAssembly.instantiate` (from 1) fail, as under a policy or without relaxed SIMD. `made`
 * counts those that did not: without one, nothing but JavaScript is left.
 */
function refuse(...refused: number[]): { calls: () => number; made: () => number } {
  const instantiate = WebAssembly.instantiate as unknown as (bytes: BufferSource) => Promise<object>;
  let calls = 0;
  let made = 0;
  vi.spyOn(WebAssembly, "instantiate").mockImplementation((async (bytes: BufferSource) => {
    if (refused.includes(++calls)) throw new WebAssembly.CompileError("refused");
    const result = await instantiate(bytes);
    made++;
    return result;
  }) as never);
  return { calls: () => calls, made: () => made };
}

test("the WebAssembly in the file runs, and decodes any k of n", async () => {
  const { calls, made } = refuse();
  const decoder = await inlined.inlinedDecoder();
  expect([calls(), made()]).toEqual([1, 1]);
  await decodesAnyPattern(decoder);
});

test("without relaxed SIMD it runs with plain swizzles", async () => {
  const { calls, made } = refuse(1);
  const decoder = await inlined.inlinedDecoder();
  expect([calls(), made()]).toEqual([2, 1]);
  await decodesAnyPattern(decoder);
});

test("where WebAssembly is forbidden it imports the decoder in JavaScript, once", async () => {
  const { calls, made } = refuse(1, 2, 3, 4);
  const importScripts = vi.fn<(url: string) => void>(() => vm.runInThisContext(`{${imported}}`));
  vi.stubGlobal("importScripts", importScripts);
  await inlined.inlinedDecoder();
  const decoder = await inlined.inlinedDecoder();
  expect([calls(), made()]).toEqual([4, 0]);
  expect(importScripts.mock.calls).toEqual([["agarose-decoder.js"]]);
  await decodesAnyPattern(decoder);
});

test("where that cannot be imported there is none", async () => {
  const { made } = refuse(1, 2);
  vi.stubGlobal("importScripts", (url: string) => {
    throw new DOMException(`${url} failed to load`, "NetworkError");
  });
  await expect(inlined.inlinedDecoder()).rejects.toMatchObject({ name: "NetworkError" });
  expect(made()).toBe(0);
});

test.each([
  ["in WebAssembly", []],
  ["in JavaScript", [1, 2]],
])("the largest decode of all, of 128 rows from as many functional chunks, is made %s", async (_name, refused) => {
  const { made } = refuse(...refused);
  vi.stubGlobal("importScripts", () => vm.runInThisContext(`{${imported}}`));
  const decoder = await inlined.inlinedDecoder();
  expect(made()).toBe(refused.length === 0 ? 1 : 0);
  const rows = Array.from({ length: 128 }, (_, i) => i);
  const data = rows.map((row) => Uint8Array.from({ length: 5_000 }, (_, i) => row * 31 + i * 7));
  const codec = await loadCodec();
  const functional = codec.encode(
    data,
    rows.map((row) => 128 + row),
  );
  const shards = functional.map((bytes, row) => ({ index: 128 + row, bytes })).toReversed();
  expect(decoder.reconstruct(128, shards, rows)).toEqual(data);
});

async function decodesAnyPattern(decoder: Decoder): Promise<void> {
  const codec = await loadCodec();
  const shape = fc.record({ k: fc.integer({ min: 1, max: 12 }), m: fc.integer({ min: 1, max: 4 }) });
  const scene = shape.chain(({ k, m }) =>
    fc.record({
      data: fc.array(fc.uint8Array({ minLength: 70, maxLength: 70 }), { minLength: k, maxLength: k }),
      kept: fc.shuffledSubarray([...Array(k + m).keys()], { minLength: k, maxLength: k }),
      m: fc.constant(m),
    }),
  );
  fc.assert(
    fc.property(scene, ({ data, kept, m }) => {
      const k = data.length;
      const rows = Array.from({ length: m }, (_, i) => k + i);
      const stripe = [...data, ...codec.encode(data, rows)];
      const lost = [...stripe.keys()].filter((index) => !kept.includes(index));
      const shards = kept.map((index) => ({ index, bytes: stripe[index]! }));
      expect(decoder.reconstruct(k, shards, lost)).toEqual(lost.map((index) => stripe[index]));
    }),
    { numRuns: 50 },
  );
}
