/**
 * The decoder of the drop-in files: its WebAssembly is in the file itself, compressed, and is compiled when first needed.
 */
import type { Decoder } from "@agarose/core";
import { createWasmEngine, withPlainSwizzle, type Engine, type KernelName } from "@agarose/ec-wasm/engine";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";
import { engineDecoder } from "./engine-decoder.ts";
import { createPlainEngine } from "./plain-engine.ts";

/** Decodes in JavaScript where there is no SIMD or a Content Security Policy forbids WebAssembly; `kernel` tells. */
export async function inlinedDecoder(): Promise<Decoder & { readonly kernel: KernelName }> {
  return engineDecoder(await wasmEngine().catch(createPlainEngine));
}

async function wasmEngine(): Promise<Engine> {
  const packed = Uint8Array.from(atob(relaxed), (character) => character.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(unpacked).arrayBuffer());
  // Without relaxed SIMD the module is not valid here; the same with plain swizzles is, wherever there is SIMD at all.
  const { instance } = await WebAssembly.instantiate(bytes).catch(() =>
    WebAssembly.instantiate(withPlainSwizzle(bytes) as Uint8Array<ArrayBuffer>),
  );
  return createWasmEngine(instance);
}
