/**
 * The interface of the codec, and the part that all engines share: arguments are checked, shards chosen, matrices
 * cached and present rows copied here, so an engine only has to multiply.
 */
import { codecError } from "./error.ts";
import { MatrixCache } from "./matrix-cache.ts";

/**
 * One coded piece: `index < k` is a data shard, the rest are parity rows, functional chunks included (`index < 256`).
 */
export interface Shard {
  readonly index: number;
  readonly bytes: Uint8Array;
}

/** A systematic Reed-Solomon code over GF(2^8) whose parity row i does not depend on m. Calls are synchronous. */
export interface Codec {
  /**
   * The parity shards of chunk indices `rows` (each >= k, distinct) for the k data shards of equal length, written into
   * `out` (same order) when given. Throws CODE_INVALID (k is not 1..255) or SHARDS_INVALID.
   */
  encode(data: readonly Uint8Array[], rows: readonly number[], out?: readonly Uint8Array[]): Uint8Array[];
  /**
   * The shards `wanted` (data or parity indices, distinct) from any k or more distinct `shards` of equal length,
   * written into `out` (same order) when given; `out` must not overlap `shards`. Only wanted rows are computed, and
   * what is among `shards` already is copied. Throws CODE_INVALID, NOT_ENOUGH_SHARDS or SHARDS_INVALID.
   */
  reconstruct(
    k: number,
    shards: readonly Shard[],
    wanted: readonly number[],
    out?: readonly Uint8Array[],
  ): Uint8Array[];
}

/** A codec that says what it runs on. */
export interface LoadedCodec extends Codec {
  readonly kernel: KernelName;
}

/** Fastest first: SIMD with relaxed swizzle, plain SIMD, WebAssembly without SIMD, no WebAssembly at all. */
export type KernelName = "relaxed" | "simd" | "scalar" | "javascript";

/** Multiplies matrices with shards; knows nothing of chunk indices beyond `matrix`. */
export interface Engine {
  readonly kernel: KernelName;
  /** Row-major coefficients of the rows `wanted` over the k rows `present` (distinct). */
  matrix(present: Uint8Array, wanted: Uint8Array): Uint8Array;
  /** outputs = matrix x inputs; all arrays have the same length, which is not 0. */
  apply(matrix: Uint8Array, inputs: readonly Uint8Array[], outputs: readonly Uint8Array[]): void;
}

/** Indices of chunks. */
export type Rows = Uint8Array | readonly number[];

/**
 * The rows `wanted` from the k `inputs`, which are the rows `present`: distinct, in any order, of one length that is
 * not 0.
 */
export type RowsDecoder = (present: Rows, inputs: readonly Uint8Array[], wanted: readonly number[]) => Uint8Array[];

/** Rows of the code: the order of the field. */
const ROWS_MAX = 256;

/** Puts the shared checks and the matrix cache in front of an engine. */
export function createCodec(engine: Engine): LoadedCodec {
  const cache = new MatrixCache((present, wanted) => engine.matrix(present, wanted));

  function multiply(
    present: readonly number[],
    inputs: readonly Uint8Array[],
    wanted: readonly number[],
    outputs: readonly Uint8Array[],
  ): void {
    if (wanted.length > 0 && inputs[0]!.length > 0) engine.apply(cache.get(present, wanted), inputs, outputs);
  }

  return {
    kernel: engine.kernel,

    encode(data, rows, out) {
      const k = checkDataCount(data.length);
      const bytes = checkEqualLengths(data);
      checkIndices(rows, k, "row");
      const outputs = checkedOutputs(rows, bytes, out);
      multiply(firstIndices(k), data, rows, outputs);
      return outputs;
    },

    reconstruct(k, shards, wanted, out) {
      checkDataCount(k);
      const bytes = checkEqualLengths(shards.map((shard) => shard.bytes));
      const indices = shards.map((shard) => shard.index);
      checkIndices(indices, 0, "shard");
      checkIndices(wanted, 0, "wanted shard");
      if (shards.length < k) throw notEnoughShards(k, shards.length, indices);
      const outputs = checkedOutputs(wanted, bytes, out);

      const missing: number[] = [];
      const missingOutputs: Uint8Array[] = [];
      wanted.forEach((index, i) => {
        const at = indices.indexOf(index);
        if (at >= 0) outputs[i]!.set(shards[at]!.bytes);
        else {
          missing.push(index);
          missingOutputs.push(outputs[i]!);
        }
      });
      if (missing.length === 0) return outputs;
      // Lowest indices first: a data shard in the input makes the matrix no denser and needs no inversion.
      const used = shards.toSorted((a, b) => a.index - b.index).slice(0, k);
      multiply(
        used.map((shard) => shard.index),
        used.map((shard) => shard.bytes),
        missing,
        missingOutputs,
      );
      return outputs;
    },
  };
}

function firstIndices(k: number): number[] {
  return Array.from({ length: k }, (_, index) => index);
}

function checkDataCount(k: number): number {
  if (Number.isInteger(k) && k >= 1 && k < ROWS_MAX) return k;
  throw codecError("CODE_INVALID", `k is ${k}, but must be 1 to ${ROWS_MAX - 1}: the code has ${ROWS_MAX} rows`, {
    k,
    kMax: ROWS_MAX - 1,
  });
}

function checkEqualLengths(arrays: readonly Uint8Array[]): number {
  const bytes = arrays[0]?.length ?? 0;
  arrays.forEach((array, at) => {
    if (array.length === bytes) return;
    throw codecError(
      "SHARDS_INVALID",
      `shard ${at} of the list has ${array.length} bytes, the first has ${bytes}: pad all shards to one length`,
      { at, bytes: array.length, expectedBytes: bytes },
    );
  });
  return bytes;
}

function checkIndices(indices: readonly number[], lowest: number, what: string): void {
  const seen = new Set<number>();
  for (const index of indices) {
    if (!Number.isInteger(index) || index < lowest || index >= ROWS_MAX) {
      throw codecError("SHARDS_INVALID", `${what} ${index} is outside ${lowest} to ${ROWS_MAX - 1}`, {
        index,
        lowest,
        highest: ROWS_MAX - 1,
      });
    }
    if (seen.has(index)) {
      throw codecError("SHARDS_INVALID", `${what} ${index} is given twice: pass every index once`, { index });
    }
    seen.add(index);
  }
}

function checkedOutputs(rows: readonly number[], bytes: number, out?: readonly Uint8Array[]): Uint8Array[] {
  if (out === undefined) return newOutputs(rows.length, bytes);
  if (out.length !== rows.length) {
    throw codecError("SHARDS_INVALID", `${out.length} output buffers for ${rows.length} rows: pass one per row`, {
      buffers: out.length,
      rows: rows.length,
    });
  }
  out.forEach((buffer, at) => {
    if (buffer.length === bytes) return;
    throw codecError("SHARDS_INVALID", `output ${at} has ${buffer.length} bytes, the shards have ${bytes}`, {
      at,
      bytes: buffer.length,
      expectedBytes: bytes,
    });
  });
  return [...out];
}

function newOutputs(rows: number, bytes: number): Uint8Array[] {
  try {
    return Array.from({ length: rows }, () => new Uint8Array(bytes));
  } catch (cause) {
    const problem = `${rows} rows of ${bytes} bytes do not fit in memory: code shorter stripes`;
    throw codecError("SHARDS_INVALID", problem, { rows, bytes }, cause);
  }
}

function notEnoughShards(needed: number, received: number, indices: number[]): Error {
  return codecError("NOT_ENOUGH_SHARDS", `${needed} shards are needed, ${received} were given: fetch more chunks`, {
    needed,
    received,
    indices,
  });
}
