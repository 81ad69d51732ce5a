/**
 * `agarose-decoder.js`: decodes in JavaScript, for workers that have no WebAssembly. Half as fast as the JavaScript
 * engine of `@agarose/ec-wasm` with three shards lost, and a tenth of its code.
 */
import { decodeMatrix, multiply, type RowsDecoder } from "@agarose/ec-wasm/engine";

const decoder: RowsDecoder = (present, inputs, wanted) => {
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

(globalThis as { agaroseDecoder?: RowsDecoder }).agaroseDecoder = decoder;
