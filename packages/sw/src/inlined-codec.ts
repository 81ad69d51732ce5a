/**
 * The codec of the drop-in files: its WebAssembly is in the file itself, and is compiled when first needed.
 */
import { kernelSupported, loadCodec, type LoadedCodec } from "@agarose/ec-wasm";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";
import simd from "@agarose/ec-wasm/simd.wasm";

/** Falls back to JavaScript where neither build runs or a Content Security Policy forbids WebAssembly. */
export function inlinedCodec(): Promise<LoadedCodec> {
  // Chosen before decoding, so that only one of the two is ever unpacked.
  if (kernelSupported("relaxed")) return loadCodec(bytesOf(relaxed));
  return loadCodec({ simd: bytesOf(simd) });
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
