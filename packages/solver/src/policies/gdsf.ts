/**
 * Greedy-Dual-Size-Frequency (Cherkasova 1998) with c chunks per object. An object's priority is clock + frequency x
 * cost / size. The object of lowest priority leaves, and the clock rises to its priority, so that objects without reads
 * fall behind. The cost is the milliseconds that a read saves by those chunks.
 *
 * Departure: an object enters only if its priority is above that of all objects that would have to leave.
 */
import { keptObjects, type Policy, type PolicyCache } from "../policy/policy.ts";
import { packSnapshot, type SnapshotReader } from "../policy/snapshot.ts";

/** Creates the policy for `cache`, as new or from a snapshot. `chunksOf`: how many chunks of an object it keeps. */
export function gdsf(cache: PolicyCache, chunksOf: (object: number) => number, state?: SnapshotReader): Policy {
  const frequency = state?.float64(cache.objects) ?? new Float64Array(cache.objects);
  let clock = state?.float64(1)[0] ?? 0;
  const priority = restoredPriorities(state);
  // Objects that another policy left in the cache go first.
  for (const object of keptObjects(cache)) if (!priority.has(object)) priority.set(object, 0);

  /**
   * The objects of lowest priority that would make room, or undefined when one of them has a higher priority than
   * `own`.
   */
  function victimsFor(object: number, size: number, own: number): number[] | undefined {
    let needed = cache.used + size - cache.countOf(object) * cache.chunkWeight[object]! - cache.capacity;
    const victims: number[] = [];
    const left = new Map(priority);
    left.delete(object);
    while (needed > 0) {
      let lowest = -1;
      for (const [other, value] of left) if (lowest < 0 || value < left.get(lowest)!) lowest = other;
      if (lowest < 0 || left.get(lowest)! >= own) return undefined;
      left.delete(lowest);
      victims.push(lowest);
      needed -= cache.countOf(lowest) * cache.chunkWeight[lowest]!;
    }
    return victims;
  }

  return {
    onRequest: (object) => {
      const chunks = chunksOf(object);
      const size = chunks * cache.chunkWeight[object]!;
      if (size > cache.capacity) return;
      // Objects outside the cache are counted too, or no new object could ever win.
      frequency[object]! += 1;
      const own = clock + (frequency[object]! * cache.savedMs(object, chunks)) / size;
      if (cache.countOf(object) !== chunks) {
        const victims = victimsFor(object, size, own);
        if (!victims) return;
        for (const victim of victims) {
          clock = Math.max(clock, priority.get(victim)!);
          priority.delete(victim);
          cache.keep(victim, 0);
        }
        cache.keep(object, chunks);
      }
      priority.set(object, own);
    },
    forget: (object) => {
      frequency[object] = 0;
      priority.delete(object);
    },
    snapshot: () =>
      packSnapshot("gdsf", cache.objects, [
        frequency,
        Float64Array.of(clock),
        [...priority.keys()],
        Float64Array.from(priority.values()),
      ]),
  };
}

/** In the order in which priorities were set, which breaks ties. */
function restoredPriorities(state: SnapshotReader | undefined): Map<number, number> {
  const objects = state?.objectList() ?? [];
  const values = state?.float64(objects.length) ?? [];
  return new Map(objects.map((object, i) => [object, values[i]!]));
}
