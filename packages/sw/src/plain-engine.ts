/**
 * The multiplication of the drop-in files where there is no WebAssembly: half as fast as the JavaScript engine of
 * `@agarose/ec-wasm` with three shards lost, and a tenth of its code.
 */
import { multiply, type Engine } from "@agarose/ec-wasm/engine";

export const plainMultiplier: Engine["apply"] = (matrix, inputs, outputs) => {
  for (const [row, output] of outputs.entries()) {
    for (const [column, input] of inputs.entries()) {
      const factor = matrix[row * inputs.length + column]!;
      const products = Uint8Array.from({ length: 256 }, (_, byte) => multiply(factor, byte));
      for (let i = 0; i < input.length; i++) output[i]! ^= products[input[i]!]!;
    }
  }
};
