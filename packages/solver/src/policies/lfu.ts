/**
 * LFU-c: at the end of each period the cache keeps c chunks of the objects requested most often since the start (Agar,
 * section V-A: a proxy counts, and reconfigures the cache every 30 seconds).
 */
import { applyConfiguration, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";

/** Creates the policy for `cache`, as new or from a snapshot. `chunksOf`: how many chunks of an object it keeps. */
export function lfu(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  const requests = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
  return {
    onRequest: (object) => {
      requests[object]! += 1;
    },
    onPeriod: () => {
      const seen = Array.from(requests.keys()).filter((object) => requests[object]! > 0);
      const count = new Uint8Array(cache.objects);
      let room = cache.capacity;
      for (const object of seen.toSorted((a, b) => requests[b]! - requests[a]! || a - b)) {
        const chunks = chunksOf(object);
        const needed = chunks * cache.chunkWeight[object]!;
        if (needed > room) continue;
        room -= needed;
        count[object] = chunks;
      }
      applyConfiguration(cache, count);
    },
    forget: (object) => {
      requests[object] = 0;
    },
    snapshot: () => packSnapshot("lfu", cache.objects, [requests]),
  };
}
