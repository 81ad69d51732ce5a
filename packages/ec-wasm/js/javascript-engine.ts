/**
 * The engine without WebAssembly, for pages whose Content Security Policy forbids it and for runtimes without SIMD. It
 * shares no code with the Rust crate, matrix included, so the contract suite checks one against the other.
 *
 * Up to four rows at once: one lookup per input byte yields its products for all of them, packed in 32 bits. Blocks pass
 * through buffers of fixed size that are read a word at a time: a typed array checks its bounds at every access, so fewer,
 * wider accesses make it three times as fast as the plain loop over bytes.
 */
import { createCodec } from "./codec.ts";
import type { Engine, LoadedCodec } from "./codec.ts";
import { decodeMatrix } from "./galois.ts";
import { fillProductTables, ROWS_PER_TABLE, TABLE_ENTRIES } from "./product-tables.ts";

/** Columns at a time: the sums of a block stay in the first-level cache. */
const BLOCK_COLUMNS = 4096;
/** The largest k. */
const INPUTS_MAX = 255;

let codec: LoadedCodec | undefined;

/** The codec on plain JavaScript; one instance for all. */
export function javascriptCodec(): LoadedCodec {
  codec ??= createCodec(createJavascriptEngine());
  return codec;
}

/** The engine itself, without the checks in front of it. */
export function createJavascriptEngine(): Engine {
  const tables = new Int32Array(INPUTS_MAX * TABLE_ENTRIES);
  const sums = new Int32Array(BLOCK_COLUMNS);
  const block = new Uint8Array(BLOCK_COLUMNS);
  const words = new Uint32Array(block.buffer);

  return {
    kernel: "javascript",
    matrix: decodeMatrix,
    apply(matrix, inputs, outputs) {
      const k = inputs.length;
      for (let row = 0; row < outputs.length; row += ROWS_PER_TABLE) {
        const group = outputs.slice(row, row + ROWS_PER_TABLE);
        fillProductTables(tables, matrix.subarray(row * k), k, group.length);
        applyGroup(inputs, group);
      }
    },
  };

  function applyGroup(inputs: readonly Uint8Array[], outputs: readonly Uint8Array[]): void {
    const shardBytes = inputs[0]!.length;
    for (let start = 0; start < shardBytes; start += BLOCK_COLUMNS) {
      const end = Math.min(start + BLOCK_COLUMNS, shardBytes);
      sums.fill(0);
      for (const [j, input] of inputs.entries()) {
        block.set(input.subarray(start, end));
        addProducts(j * TABLE_ENTRIES, (end - start + 3) >> 2);
      }
      for (const [r, output] of outputs.entries()) {
        takeRow(8 * r, end - start);
        output.set(block.subarray(0, end - start), start);
      }
    }
  }

  /** Adds the products of the block's bytes to the sums. Every platform that runs JavaScript today is little-endian. */
  function addProducts(table: number, wordCount: number): void {
    for (let i = 0; i < wordCount; i++) {
      const word = words[i]!;
      const column = i << 2;
      sums[column]! ^= tables[table | (word & 0xff)]!;
      sums[column + 1]! ^= tables[table | ((word >>> 8) & 0xff)]!;
      sums[column + 2]! ^= tables[table | ((word >>> 16) & 0xff)]!;
      sums[column + 3]! ^= tables[table | (word >>> 24)]!;
    }
  }

  function takeRow(shift: number, columns: number): void {
    for (let i = 0; i < columns; i++) block[i] = sums[i]! >>> shift;
  }
}
