/** The decoder of the drop-in files, bundled as they bundle it. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { Decoder } from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";
import { build } from "esbuild";
import * as fc from "fast-check";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { wasmAsText } from "../build.ts";

type Inlined = { inlinedDecoder(): Promise<Decoder> };

let folder: string;
let inlined: Inlined;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "agarose-decoder-test-"));
  const outfile = join(folder, "decoder.mjs");
  const entry = fileURLToPath(new URL("../src/inlined-decoder.ts", import.meta.url));
  await build({ entryPoints: [entry], bundle: true, format: "esm", outfile, plugins: [wasmAsText()] });
  inlined = (await import(/* @vite-ignore */ pathToFileURL(outfile).href)) as Inlined;
});

afterEach(() => vi.restoreAllMocks());
afterAll(() => rm(folder, { recursive: true, force: true }));

/**
 * Where the given calls of `WebAssembly.instantiate` (from 1) fail, as under a policy or without relaxed SIMD. `made` counts
 * those that did not: without one, nothing but JavaScript is left.
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

test("where WebAssembly is forbidden it decodes in JavaScript", async () => {
  const { calls, made } = refuse(1, 2);
  const decoder = await inlined.inlinedDecoder();
  expect([calls(), made()]).toEqual([2, 0]);
  await decodesAnyPattern(decoder);
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
