/**
 * LRU-c: each object read enters the cache with c chunks, and the least recently read objects leave. It is the baseline
 * of Agar (section V-A) and, with c = k, of Liu et al. (section VI).
 */
import { keptObjects, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";

/** Creates the policy for `cache`, as new or from a snapshot. `chunksOf`: how many chunks of an object it keeps. */
export function lru(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  // A Set iterates in insertion order, least recently read first. Objects whose last read is unknown go before all
  // others.
  const known = new Set(state?.objectList());
  const recent = new Set([...keptObjects(cache).filter((object) => !known.has(object)), ...known]);
  return {
    onRequest: (object) => {
      const chunks = chunksOf(object);
      if (chunks * cache.chunkWeight[object]! > cache.capacity) return;
      recent.delete(object);
      const needed = (chunks - cache.countOf(object)) * cache.chunkWeight[object]!;
      if (needed !== 0) {
        for (const oldest of recent) {
          if (cache.used + needed <= cache.capacity) break;
          recent.delete(oldest);
          cache.keep(oldest, 0);
        }
        cache.keep(object, chunks);
      }
      recent.add(object);
    },
    forget: (object) => void recent.delete(object),
    snapshot: () => packSnapshot("lru", cache.objects, [[...recent]]),
  };
}
