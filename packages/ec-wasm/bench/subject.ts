/** The measured operations, and the common shape of all implementations. */

export type Op = "encode" | "reconstruct";

/**
 * One piece of work: `lost` data shards of a (k,m) stripe of `bytes` object bytes are reconstructed, or m rows encoded.
 */
export interface Work {
  readonly op: Op;
  readonly k: number;
  readonly m: number;
  readonly bytes: number;
  readonly lost: number;
}

/** One implementation in one runtime, ready to do one piece of work again and again. */
export interface Subject {
  readonly implementation: string;
  readonly runtime: string;
  /** Does the work `iterations` times and returns the microseconds that one took. */
  measure(iterations: number): Promise<number>;
}

/** Subjects for a piece of work, or why there are none here. */
export interface Contestant {
  readonly name: string;
  prepare(work: Work): Promise<Subject[]>;
  close(): Promise<void>;
}

/** A contestant that cannot take part on this machine throws this; the report lists the reason. */
export class Unavailable extends Error {}

export function shardBytes(work: Work): number {
  return Math.ceil(work.bytes / work.k);
}

/** The row indices that are present and wanted. */
export function rowsOf(work: Work): { present: number[]; wanted: number[] } {
  if (work.op === "encode") return { present: range(0, work.k), wanted: range(work.k, work.k + work.m) };
  return { present: range(work.lost, work.lost + work.k), wanted: range(0, work.lost) };
}

/** Bytes that no implementation can take a short cut on: xorshift32, the same everywhere. */
export function shardsOf(work: Work): Uint8Array[] {
  let state = 0x9e3779b9;
  return range(0, work.k).map(() => {
    const bytes = new Uint8Array(shardBytes(work));
    for (let i = 0; i < bytes.length; i++) {
      state ^= state << 13;
      state ^= state >>> 17;
      state ^= state << 5;
      bytes[i] = state >>> 11;
    }
    return bytes;
  });
}

/** Wraps a synchronous call as a subject. */
export function timed(implementation: string, runtime: string, call: () => void): Subject {
  return {
    implementation,
    runtime,
    async measure(iterations) {
      const start = performance.now();
      for (let i = 0; i < iterations; i++) call();
      return ((performance.now() - start) * 1000) / iterations;
    },
  };
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
