/**
 * LRU-c: each object read comes into the cache with c chunks, and the least recently read ones leave. The baseline of Agar
 * (section V-A) and, with c = k, of Liu et al. (section VI).
 */

import type { Policy, PolicyCache } from "./policy.ts";

export function lru(cache: PolicyCache, chunks: number): Policy {
  // A Map iterates in insertion order, so the first key is the least recently used one.
  const recent = new Map<number, true>();
  return {
    onRequest: (object) => {
      const needed = chunks * cache.chunkWeight[object]!;
      if (needed > cache.capacity) return;
      recent.delete(object);
      if (cache.countOf(object) === 0) {
        for (const oldest of recent.keys()) {
          if (cache.used + needed <= cache.capacity) break;
          recent.delete(oldest);
          cache.keep(oldest, 0);
        }
        cache.keep(object, chunks);
      }
      recent.set(object, true);
    },
  };
}
