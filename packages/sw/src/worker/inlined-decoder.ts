/**
 * The decoder of the drop-in files: its WebAssembly is in the file itself, compressed, and is compiled when first
 * needed.
 */
import type { Decoder } from "@agarose/core";
import { wasmDecoder, withPlainSwizzle, type RowsDecoder } from "@agarose/ec-wasm/engine";
import { DECODER_FILE } from "../common/worker-files.ts";
import { WASM_MASK } from "./wasm-mask.ts";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";

/** What `agarose-decoder.js` sets, and how a classic worker loads it; module workers import it themselves. */
interface DecoderScope {
  agaroseDecoder?: RowsDecoder;
  importScripts(url: string): void;
}

/**
 * Decodes in JavaScript where there is no SIMD, or where a Content Security Policy forbids WebAssembly:
 * `agarose-decoder.js` does, from beside the worker's own file. A browser lets a worker import what it has imported
 * before it was installed, so this is to be called then. Rejects where that file is missing.
 */
export async function inlinedDecoder(): Promise<Decoder> {
  const decoded = await inlinedWasm().catch(javascript);
  return {
    reconstruct: (_k, shards, wanted) =>
      decoded(
        shards.map(({ index }) => index),
        shards.map(({ bytes }) => bytes),
        wanted,
      ),
  };
}

function javascript(): RowsDecoder {
  const scope = globalThis as unknown as DecoderScope;
  if (!scope.agaroseDecoder) scope.importScripts(DECODER_FILE);
  return scope.agaroseDecoder!;
}

async function inlinedWasm(): Promise<RowsDecoder> {
  const bytes = Uint8Array.from(relaxed, (character) => WASM_MASK - character.charCodeAt(0));
  // Without relaxed SIMD the module is not valid here; the same with plain swizzles is, wherever there is SIMD at all.
  const { instance } = await WebAssembly.instantiate(bytes).catch(() =>
    WebAssembly.instantiate(withPlainSwizzle(bytes)),
  );
  return wasmDecoder(instance);
}
