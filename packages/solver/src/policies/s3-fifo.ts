/**
 * S3-FIFO (Yang et al., SOSP 2023, algorithm 1) with c chunks per object: three queues in the order of arrival. New
 * objects enter the small one, a tenth of the cache. Those that were read twice there continue into the main one, the
 * others leave, and their names stay in the ghost queue. An object whose name is there enters the main queue at once,
 * where each read since the last look gives another round.
 */
import { keptObjects, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";
import { Segment } from "./segment.ts";

const SMALL_SHARE = 0.1;
/** Counts of reads end here. */
const READS_MAX = 3;

/** Creates the policy for `cache`, as new or from a snapshot. `chunksOf`: how many chunks of an object it keeps. */
export function s3Fifo(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  const sizeOf = (object: number): number => chunksOf(object) * cache.chunkWeight[object]!;
  const reads = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
  // The order of reading is that of `snapshot`.
  const small = new Segment(sizeOf, state);
  const main = new Segment(sizeOf, state);
  const ghost = new Segment(sizeOf, state);
  for (const object of keptObjects(cache)) if (!small.has(object) && !main.has(object)) main.add(object);

  /** Looks at the oldest object of a queue, which leaves the cache or stays for another round in the main queue. */
  function evictFrom(queue: Segment): void {
    const object = queue.removeOldest();
    const isRead = queue === small ? reads[object]! > 1 : reads[object]! > 0;
    if (isRead) {
      reads[object] = queue === small ? 0 : reads[object]! - 1;
      main.add(object);
      return;
    }
    cache.keep(object, 0);
    if (queue !== small) return;
    ghost.add(object);
    while (ghost.size > (1 - SMALL_SHARE) * cache.capacity) ghost.removeOldest();
  }

  return {
    onRequest: (object) => {
      if (sizeOf(object) > cache.capacity) return;
      const isKept = small.has(object) || main.has(object);
      if (isKept) reads[object] = Math.min(READS_MAX, reads[object]! + 1);
      const needed = sizeOf(object) - cache.countOf(object) * cache.chunkWeight[object]!;
      if (needed === 0) return;
      const queue = main.has(object) || ghost.has(object) ? main : small;
      // Nothing evicts the object itself while others make room for it.
      for (const own of [small, main, ghost]) own.remove(object);
      while (cache.used + needed > cache.capacity) {
        const isSmall = small.size >= SMALL_SHARE * cache.capacity || main.oldest() === undefined;
        const from = isSmall && small.oldest() !== undefined ? small : main;
        if (from.oldest() === undefined) break;
        evictFrom(from);
      }
      if (!isKept) reads[object] = 0;
      queue.add(object);
      cache.keep(object, chunksOf(object));
    },
    forget: (object) => {
      reads[object] = 0;
      for (const queue of [small, main, ghost]) queue.remove(object);
    },
    snapshot: () =>
      packSnapshot("s3-fifo", cache.objects, [reads, ...[small, main, ghost].map((queue) => [...queue.objects()])]),
  };
}
