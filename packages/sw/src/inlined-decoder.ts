/**
 * The decoder of the drop-in files: its WebAssembly is in the file itself, compressed, and is compiled when first needed.
 */
import type { Decoder } from "@agarose/core";
import { wasmMultiplier, withPlainSwizzle } from "@agarose/ec-wasm/engine";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";
import { engineDecoder } from "./engine-decoder.ts";
import { plainMultiplier } from "./plain-engine.ts";

/**
 * Decodes in JavaScript where there is no SIMD or a Content Security Policy forbids WebAssembly, and what is too large for the
 * tables of the WebAssembly.
 */
export async function inlinedDecoder(): Promise<Decoder> {
  const multiplied = await inlinedMultiplier().catch(() => () => false);
  return engineDecoder((matrix, inputs, outputs) => {
    if (!multiplied(matrix, inputs, outputs)) plainMultiplier(matrix, inputs, outputs);
  });
}

async function inlinedMultiplier(): Promise<ReturnType<typeof wasmMultiplier>> {
  const packed = Uint8Array.from(atob(relaxed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  // Without relaxed SIMD the module is not valid here; the same with plain swizzles is, wherever there is SIMD at all.
  const { instance } = await WebAssembly.instantiate(bytes).catch(() =>
    WebAssembly.instantiate(withPlainSwizzle(bytes) as Uint8Array<ArrayBuffer>),
  );
  return wasmMultiplier(instance);
}
