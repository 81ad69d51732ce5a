/**
 * SIEVE (Zhang et al., NSDI 2024, algorithm 1) with c chunks per object: a queue in the order of arrival. A read marks
 * its object. A hand moves from the oldest object to the newest and around again, takes marks away, and evicts the
 * first object without one.
 */
import { keptObjects, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";

/** Creates the policy for `cache`, as new or from a snapshot. `chunksOf`: how many chunks of an object it keeps. */
export function sieve(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  // A Set iterates in the order of insertion, and an iterator of it survives insertions and deletions.
  const queue = new Set([...(state?.objectList() ?? []), ...keptObjects(cache)]);
  const marked = new Set(state?.objectList());
  let hand = queue.values();
  /** The object to look at next; undefined at the end of the queue. */
  let next: number | undefined;
  const advance = (): void => void (next = hand.next().value);
  const remove = (object: number): void => {
    queue.delete(object);
    marked.delete(object);
    // If it comes again, it is the newest.
    if (next === object) advance();
  };
  advance();
  for (let passed = state?.float64(1)[0] ?? 0; passed > 0; passed--) advance();

  /** Evicts one object other than `kept`, and returns whether there was one. */
  function evict(kept: number): boolean {
    // Once around takes all marks away, the second time evicts, and either may end with a turn.
    for (let turns = 0; turns <= 2 * (queue.size + 1); turns++) {
      const object = next;
      if (object === undefined) {
        hand = queue.values();
        advance();
        continue;
      }
      advance();
      if (marked.delete(object) || object === kept) continue;
      remove(object);
      cache.keep(object, 0);
      return true;
    }
    return false;
  }

  return {
    onRequest: (object) => {
      const chunks = chunksOf(object);
      const weight = cache.chunkWeight[object]!;
      if (chunks * weight > cache.capacity) return;
      if (queue.has(object)) marked.add(object);
      const needed = (chunks - cache.countOf(object)) * weight;
      if (needed === 0) return;
      while (cache.used + needed > cache.capacity && evict(object));
      queue.add(object);
      cache.keep(object, chunks);
    },
    forget: remove,
    snapshot: () => {
      const objects = [...queue];
      const passed = next === undefined ? objects.length : objects.indexOf(next);
      return packSnapshot("sieve", cache.objects, [objects, [...marked], Float64Array.of(passed)]);
    },
  };
}
