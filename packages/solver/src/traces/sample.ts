/** Samples a log that was read: all reads of some of its objects behave like the whole log with smaller caches. */
import { placeOf, type Trace } from "./trace.ts";

/**
 * Keeps about `readsMax` reads: all reads of the objects whose key hashes below a threshold (SHARDS, Waldspurger et
 * al., FAST 2015). Returns a shorter log as it is, and also one that has too few objects to choose from.
 */
export function sampleTrace(trace: Trace, readsMax: number): Trace {
  const wanted = Math.min(1, readsMax / trace.object.length);
  if (wanted === 1) return trace;
  const numbers = new Int32Array(trace.keys.length).fill(-1);
  const kept: number[] = [];
  for (const [object, key] of trace.keys.entries()) {
    if (placeOf(key) >= wanted * trace.share) continue;
    numbers[object] = kept.length;
    kept.push(object);
  }
  const reads = Uint32Array.from(trace.object.keys()).filter((at) => numbers[trace.object[at]!]! >= 0);
  // Too few objects to choose from: the whole log is slow, but a sample would be wrong.
  if (reads.length < readsMax / 4) return trace;
  return {
    ...trace,
    keys: kept.map((object) => trace.keys[object]!),
    bytes: Float64Array.from(kept, (object) => trace.bytes[object]!),
    seconds: Float64Array.from(reads, (at) => trace.seconds[at]!),
    object: Int32Array.from(reads, (at) => numbers[trace.object[at]!]!),
    pop: Int16Array.from(reads, (at) => trace.pop[at]!),
    share: (trace.share * kept.length) / numbers.length,
  };
}
