/** Samples a log: all reads of some of its objects behave like the whole log with smaller caches. */

import type { Trace } from "./trace.ts";

/** A sampled log. */
export interface TraceSample {
  readonly trace: Trace;
  /** Share of the objects that the sample holds, above 0 and at most 1: caches must shrink by the same share. */
  readonly share: number;
}

/**
 * Keeps about `readsMax` reads: all reads of the objects whose number hashes below a threshold (SHARDS, Waldspurger et
 * al., FAST 2015). Returns a shorter log as it is, and also one that has too few objects to choose from.
 */
export function sampleTrace(trace: Trace, readsMax: number): TraceSample {
  const wanted = Math.min(1, readsMax / trace.object.length);
  if (wanted === 1) return { trace, share: 1 };
  const numbers = new Int32Array(trace.keys.length).fill(-1);
  const kept: number[] = [];
  for (let object = 0; object < numbers.length; object++) {
    if (hash(object) >= wanted) continue;
    numbers[object] = kept.length;
    kept.push(object);
  }
  const reads = Array.from(trace.object.keys()).filter((at) => numbers[trace.object[at]!]! >= 0);
  const sampled: Trace = {
    keys: kept.map((object) => trace.keys[object]!),
    bytes: Float64Array.from(kept, (object) => trace.bytes[object]!),
    seconds: Float64Array.from(reads, (at) => trace.seconds[at]!),
    object: Int32Array.from(reads, (at) => numbers[trace.object[at]!]!),
    pop: reads.map((at) => trace.pop[at]),
    report: trace.report,
  };
  // Too few objects to choose from: the whole log is slow, but a sample would be wrong.
  return reads.length < readsMax / 4 ? { trace, share: 1 } : { trace: sampled, share: kept.length / numbers.length };
}

/** Uniform in [0, 1): a finaliser of MurmurHash3. */
function hash(number: number): number {
  let h = Math.imul(number + 1, 0x9e3779b1);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32;
}
