/**
 * The engine on WebAssembly.
 *
 * Shards of any length pass through a staging area of fixed size in blocks of columns: the staging stays in the CPU's
 * cache, so the copies cost little, memory is the same for every object, and nothing is left to free after a burst.
 * Calls are synchronous, so all reads share one instance.
 */
import type { Engine, KernelName } from "./codec.ts";
import { codecError } from "./error.ts";

/** Exports of the Rust crate (`src/boundary.rs`). */
interface Exports {
  readonly memory: WebAssembly.Memory;
  kernelName(): number;
  stagingAt(): number;
  stagingBytes(): number;
  matrixAt(): number;
  rowsMax(k: number): number;
  solve(k: number, wantedCount: number): number;
  prepare(k: number, rows: number): number;
  apply(stride: number, length: number): number;
}

const KERNELS: readonly KernelName[] = ["scalar", "simd", "relaxed"];
/** Longest block of one shard; 12 shards of it fit in the second-level cache of any current machine. */
const BLOCK_BYTES_MAX = 16 * 1024;
/** The kernels work on whole vectors and may touch this much past a block (`SLACK_BYTES` of the crate). It also keeps the
 * shards of a block from falling on the same cache set. */
const SLACK_BYTES = 64;
/** More rows at a time would make blocks short for nothing: the kernels pass over the inputs for every four rows. */
const ROWS_PER_GROUP = 32;

export function createWasmEngine(instance: WebAssembly.Instance): Engine {
  const wasm = instance.exports as unknown as Exports;
  const stagingAt = wasm.stagingAt();
  const multiplyRows = wasmMultiplier(instance);
  return {
    kernel: KERNELS[wasm.kernelName()]!,
    apply(matrix, inputs, outputs) {
      const k = inputs.length;
      const rowsMax = Math.min(wasm.rowsMax(k), ROWS_PER_GROUP);
      for (let row = 0; row < outputs.length; row += rowsMax) {
        const group = outputs.slice(row, row + rowsMax);
        const isDone = multiplyRows(matrix.subarray(row * k, (row + group.length) * k), inputs, group);
        if (!isDone) throw codecError("INTERNAL", `the WASM codec has no room for ${k} x ${group.length}`, { k });
      }
    },

    matrix(present, wanted) {
      const memory = new Uint8Array(wasm.memory.buffer);
      memory.set(present, stagingAt);
      memory.set(wanted, stagingAt + present.length);
      check("solve", wasm.solve(present.length, wanted.length));
      // Solving for many rows may grow the memory, which detaches views.
      const matrixAt = wasm.matrixAt();
      return new Uint8Array(wasm.memory.buffer).slice(matrixAt, matrixAt + wanted.length * present.length);
    },
  };
}

/**
 * The matrix times the inputs, into the outputs, for those who make their matrices themselves. False, with nothing done, when
 * that is more than the tables hold: 8192 coefficients at least, which every code's k x m are, but not always its k x k.
 */
export function wasmMultiplier(
  instance: WebAssembly.Instance,
): (matrix: Uint8Array, inputs: readonly Uint8Array[], outputs: readonly Uint8Array[]) => boolean {
  const wasm = instance.exports as unknown as Exports;
  const stagingAt = wasm.stagingAt();
  return (matrix, inputs, outputs) => {
    // Anew for each call: a view is detached where the memory has grown.
    const memory = new Uint8Array(wasm.memory.buffer);
    memory.set(matrix, wasm.matrixAt());
    if (wasm.prepare(inputs.length, outputs.length) !== 0) return false;
    const shardBytes = inputs[0]!.length;
    const strideMax = wasm.stagingBytes() / (inputs.length + outputs.length);
    const blockBytes = Math.min(BLOCK_BYTES_MAX, Math.floor(strideMax / SLACK_BYTES - 1) * SLACK_BYTES);
    const stride = blockBytes + SLACK_BYTES;
    for (let start = 0; start < shardBytes; start += blockBytes) {
      const end = Math.min(start + blockBytes, shardBytes);
      let at = stagingAt;
      for (const input of inputs) {
        memory.set(input.subarray(start, end), at);
        at += stride;
      }
      // Cannot fail: the strides fit by how they were computed.
      wasm.apply(stride, end - start);
      for (const output of outputs) {
        output.set(memory.subarray(at, at + end - start), start);
        at += stride;
      }
    }
    return true;
  };
}

/** The face checks all arguments, so any other status is a defect of ours. */
function check(call: string, status: number): void {
  if (status !== 0) throw codecError("INTERNAL", `${call} of the WASM codec failed with status ${status}`, { status });
}
