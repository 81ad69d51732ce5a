/**
 * `agarose-codec.js`: decodes in WebAssembly, which is in this file, and in JavaScript where there is no SIMD or a
 * Content Security Policy forbids WebAssembly.
 */
import { decodeMatrix, multiply, wasmDecoder, withPlainSwizzle, type RowsDecoder } from "@agarose/ec-wasm/engine";
import relaxed from "@agarose/ec-wasm/relaxed.wasm";
import { CODEC_VERSION } from "../common/worker-files.ts";
import type { CodecScope } from "../worker/imported-codec.ts";

async function webAssembly(): Promise<RowsDecoder> {
  const bytes = new Uint8Array(relaxed.length).map((_, index) => relaxed.charCodeAt(index));
  // Without relaxed SIMD the module is not valid here; the same with plain swizzles is, wherever there is SIMD at all.
  const { instance } = await WebAssembly.instantiate(bytes).catch(() =>
    WebAssembly.instantiate(withPlainSwizzle(bytes)),
  );
  return wasmDecoder(instance);
}

/** Half as fast as the JavaScript engine of `@agarose/ec-wasm` with three shards lost, and a tenth of its code. */
const javascript: RowsDecoder = (present, inputs, wanted) => {
  const matrix = decodeMatrix(present, wanted);
  return wanted.map((_index, row) => {
    const output = new Uint8Array(inputs[0]!.length);
    for (const [column, input] of inputs.entries()) {
      const factor = matrix[row * inputs.length + column]!;
      const products = Uint8Array.from({ length: 256 }, (_, byte) => multiply(factor, byte));
      for (let i = 0; i < input.length; i++) output[i]! ^= products[input[i]!]!;
    }
    return output;
  });
};

(globalThis as unknown as CodecScope).agaroseCodec = {
  version: CODEC_VERSION,
  async load() {
    const decode = await webAssembly().catch(() => javascript);
    return {
      reconstruct: (_k, shards, wanted) =>
        decode(
          shards.map(({ index }) => index),
          shards.map(({ bytes }) => bytes),
          wanted,
        ),
    };
  },
};
