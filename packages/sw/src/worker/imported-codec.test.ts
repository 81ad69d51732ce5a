/** The codec of the drop-in files, as it is built. */
import vm from "node:vm";
import type { Decoder } from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";
import * as fc from "fast-check";
import { afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { builtFiles } from "../../build.ts";
import { importedCodec } from "./imported-codec.ts";

/** `agarose-codec.js`. */
let file: string;
const importScripts = vi.fn<(url: string) => void>(() => vm.runInThisContext(`{${file}}`));

beforeAll(async () => {
  file = new TextDecoder().decode((await builtFiles()).get("agarose-codec.js"));
});

beforeEach(() => {
  vi.stubGlobal("importScripts", importScripts);
  importScripts.mockClear();
});

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  Reflect.deleteProperty(globalThis, "agaroseCodec");
});

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
  const decoder = await importedCodec();
  expect([calls(), made()]).toEqual([1, 1]);
  await decodesAnyPattern(decoder);
});

test("without relaxed SIMD it runs with plain swizzles", async () => {
  const { calls, made } = refuse(1);
  const decoder = await importedCodec();
  expect([calls(), made()]).toEqual([2, 1]);
  await decodesAnyPattern(decoder);
});

test("where WebAssembly is forbidden it decodes in JavaScript, and the file is imported once", async () => {
  const { calls, made } = refuse(1, 2, 3, 4);
  await importedCodec();
  const decoder = await importedCodec();
  expect([calls(), made()]).toEqual([4, 0]);
  expect(importScripts.mock.calls).toEqual([["agarose-codec.js"]]);
  await decodesAnyPattern(decoder);
});

test("a worker that has imported it already, such as a module, imports it no more", async () => {
  importScripts("agarose-codec.js");
  importScripts.mockImplementation(() => expect.fail("imported again"));
  await decodesAnyPattern(await importedCodec());
  importScripts.mockImplementation(() => vm.runInThisContext(`{${file}}`));
});

test.each([
  ["missing", undefined],
  ["of another version", 2],
])("a file that is %s is named in the error", async (_what, version) => {
  importScripts.mockImplementationOnce((url) => {
    if (version === undefined) throw new DOMException(`${url} failed to load`, "NetworkError");
    Object.assign(globalThis, { agaroseCodec: { version, load: async () => ({ reconstruct: () => [] }) } });
  });
  await expect(importedCodec()).rejects.toMatchObject({
    code: "CONFIG_INVALID",
    message: expect.stringMatching(/agarose-codec\.js .*version 1 is needed/),
    details: { file: "agarose-codec.js", version, expected: 1 },
  });
});

test.each([
  ["in WebAssembly", []],
  ["in JavaScript", [1, 2]],
])("the largest decode of all, of 128 rows from as many functional chunks, is made %s", async (_name, refused) => {
  const { made } = refuse(...refused);
  const decoder = await importedCodec();
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
