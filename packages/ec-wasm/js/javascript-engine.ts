/**
 * The engine without WebAssembly, for runtimes without SIMD and for pages whose Content Security Policy forbids
 * WebAssembly. It shares no code with the Rust crate, so the contract suite checks each against the other.
 *
 * It computes up to four rows at once: one lookup per input byte returns the products for all of them, packed into 32
 * bits. Blocks pass through buffers of fixed size, a word at a time. A typed array checks its bounds at every access,
 * so fewer and wider accesses are three times as fast as a loop over bytes.
 */
import { createCodec, type Engine, type LoadedCodec } from "./codec.ts";
import { decodeMatrix, multiply } from "./galois.ts";

/** Rows whose products share one 32-bit entry of a table. */
const ROWS_PER_TABLE = 4;
/** Entries per input: one for each value of a byte. */
const TABLE_ENTRIES = 256;
/** Columns at a time: the sums of a block stay in the first-level cache. */
const BLOCK_COLUMNS = 4096;
/** The largest k. */
const INPUTS_MAX = 255;

let codec: LoadedCodec | undefined;

/** The codec in plain JavaScript. Every call returns the same instance. */
export function javascriptCodec(): LoadedCodec {
  codec ??= createCodec(createJavascriptEngine());
  return codec;
}

/** The engine without the checks of its arguments. */
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

/** For each of k inputs, 256 entries: the products of a byte with that input's coefficient in up to four rows. */
function fillProductTables(tables: Int32Array, matrix: Uint8Array, k: number, rows: number): void {
  for (let j = 0; j < k; j++) {
    const table = j * TABLE_ENTRIES;
    // Multiplication is linear: eight products give all 256.
    for (let first = 1; first < TABLE_ENTRIES; first *= 2) {
      let packed = 0;
      for (let r = 0; r < rows; r++) packed |= multiply(matrix[r * k + j]!, first) << (8 * r);
      for (let low = 0; low < first; low++) tables[table + first + low] = tables[table + low]! ^ packed;
    }
  }
}
