/**
 * The engine on WebAssembly.
 *
 * Shards of any length pass through a staging area of fixed size in blocks of columns: the staging stays in the CPU's
 * cache, so the copies cost little, memory is the same for every object, and nothing is left to free after a burst.
 * Calls are synchronous, so all reads share one instance.
 */
import type { Engine, KernelName, Rows, RowsDecoder } from "./codec.ts";
import { codecError } from "./error.ts";

/** Exports of the Rust crate (`src/boundary.rs`). */
interface Exports {
  readonly memory: WebAssembly.Memory;
  kernelName(): number;
  stagingAt(): number;
  matrixAt(): number;
  rowsMax(k: number): number;
  solve(k: number, wantedCount: number): number;
  prepare(k: number, rows: number): number;
  apply(stride: number, length: number): number;
}

const KERNELS: readonly KernelName[] = ["scalar", "simd", "relaxed"];
/** A stride is so much longer than a block (`SLACK_BYTES` of the crate). */
const SLACK_BYTES = 64;
/** More rows at a time would make blocks short for nothing: the kernels pass over the inputs for every four rows. */
const ROWS_PER_GROUP = 32;

/** Returns the engine over an instance of the crate's module. It throws INTERNAL where its memory cannot grow. */
export function createWasmEngine(instance: WebAssembly.Instance): Engine {
  const wasm = instance.exports as unknown as Exports;
  return {
    kernel: KERNELS[wasm.kernelName()]!,
    apply(matrix, inputs, outputs) {
      const k = inputs.length;
      const rowsMax = Math.min(wasm.rowsMax(k), ROWS_PER_GROUP);
      for (let row = 0; row < outputs.length; row += rowsMax) {
        const group = outputs.slice(row, row + rowsMax);
        memoryOf(wasm).set(matrix.subarray(row * k, (row + group.length) * k), wasm.matrixAt());
        const stride = wasm.prepare(k, group.length);
        if (stride === 0) throw codecError("INTERNAL", `the WASM codec has no room for ${k} x ${group.length}`, { k });
        multiplyRows(wasm, stride, inputs, group);
      }
    },

    matrix(present, wanted) {
      const status = solve(wasm, present, wanted);
      // The face checks all arguments, so this is a defect of ours.
      if (status !== 0)
        throw codecError("INTERNAL", `solve of the WASM codec failed with status ${status}`, { status });
      return memoryOf(wasm).slice(wasm.matrixAt(), wasm.matrixAt() + wanted.length * present.length);
    },
  };
}

/**
 * Decodes without the checks and the cache of `createCodec`, with a SIMD build: for the reader of a worker whose size
 * counts, which hands it k distinct shards of one length.
 */
export function wasmDecoder(instance: WebAssembly.Instance): RowsDecoder {
  const wasm = instance.exports as unknown as Exports;
  return (present, inputs, wanted) => {
    const outputs = wanted.map(() => new Uint8Array(inputs[0]!.length));
    // Neither can fail: the rows are distinct, and the tables have room for them. Solving takes some 15 us for (9,3).
    solve(wasm, present, wanted);
    multiplyRows(wasm, wasm.prepare(present.length, wanted.length), inputs, outputs);
    return outputs;
  };
}

/** Returns a new view for each use: growth of the memory detaches earlier views. */
function memoryOf(wasm: Exports): Uint8Array<ArrayBuffer> {
  return new Uint8Array(wasm.memory.buffer);
}

/** Leaves the coefficients of the rows `wanted` over the rows `present` in the WASM's matrix; returns its status. */
function solve(wasm: Exports, present: Rows, wanted: Rows): number {
  memoryOf(wasm).set([...present, ...wanted], wasm.stagingAt());
  return wasm.solve(present.length, wanted.length);
}

/** The prepared rows times the inputs, into the outputs. */
function multiplyRows(
  wasm: Exports,
  stride: number,
  inputs: readonly Uint8Array[],
  outputs: readonly Uint8Array[],
): void {
  const memory = memoryOf(wasm);
  const shardBytes = inputs[0]!.length;
  for (let start = 0; start < shardBytes; start += stride - SLACK_BYTES) {
    const end = Math.min(start + stride - SLACK_BYTES, shardBytes);
    let at = wasm.stagingAt();
    for (const input of inputs) {
      memory.set(input.subarray(start, end), at);
      at += stride;
    }
    wasm.apply(stride, end - start);
    for (const output of outputs) {
      output.set(memory.subarray(at, at + end - start), start);
      at += stride;
    }
  }
}
