/**
 * The codec of the drop-in files: its WebAssembly is in the file itself, and is compiled when first needed.
 */
import { loadCodec, type LoadedCodec } from "@agarose/ec-wasm";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";

/** Falls back to JavaScript where there is no SIMD or a Content Security Policy forbids WebAssembly. */
export function inlinedCodec(): Promise<LoadedCodec> {
  return loadCodec(bytesOf(relaxed));
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
