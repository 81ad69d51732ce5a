/**
 * The engine without WebAssembly, for pages whose Content Security Policy forbids it and for runtimes without SIMD. It
 * shares no code with the Rust crate, matrix included, so the contract suite checks one against the other.
 */
import { createCodec } from "./codec.ts";
import type { Engine, LoadedCodec } from "./codec.ts";
import { decodeMatrix } from "./galois.ts";
import { productTables, ROWS_PER_TABLE } from "./product-tables.ts";

/** Columns at a time: the sums of a block stay in the first-level cache. */
const BLOCK_COLUMNS = 4096;

let codec: LoadedCodec | undefined;

/** The codec on plain JavaScript; one instance for all. */
export function javascriptCodec(): LoadedCodec {
  codec ??= createCodec(createJavascriptEngine());
  return codec;
}

function createJavascriptEngine(): Engine {
  const sums = new Uint32Array(BLOCK_COLUMNS);
  return {
    kernel: "javascript",
    matrix: decodeMatrix,
    apply(matrix, inputs, outputs) {
      const k = inputs.length;
      for (let row = 0; row < outputs.length; row += ROWS_PER_TABLE) {
        const group = outputs.slice(row, row + ROWS_PER_TABLE);
        applyGroup(productTables(matrix.subarray(row * k), k, group.length), inputs, group, sums);
      }
    },
  };
}

/** Up to four rows at once: one lookup per input byte yields its products for all of them, packed in 32 bits. */
function applyGroup(
  tables: readonly Uint32Array[],
  inputs: readonly Uint8Array[],
  outputs: readonly Uint8Array[],
  sums: Uint32Array,
): void {
  const shardBytes = inputs[0]!.length;
  for (let start = 0; start < shardBytes; start += BLOCK_COLUMNS) {
    const columns = Math.min(BLOCK_COLUMNS, shardBytes - start);
    sums.fill(0);
    inputs.forEach((input, j) => addProducts(sums, tables[j]!, input, start, columns));
    outputs.forEach((output, r) => {
      const shift = 8 * r;
      for (let i = 0; i < columns; i++) output[start + i] = sums[i]! >>> shift;
    });
  }
}

function addProducts(sums: Uint32Array, table: Uint32Array, input: Uint8Array, start: number, columns: number): void {
  for (let i = 0; i < columns; i++) sums[i]! ^= table[input[start + i]!]!;
}
