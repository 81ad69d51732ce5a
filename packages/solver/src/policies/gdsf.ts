/**
 * Greedy-Dual-Size-Frequency (Cherkasova 1998) with c chunks per object: an object's priority is
 * clock + frequency x cost / size, the lowest leaves, and the clock rises to the priority of what left, so that
 * objects not read for long fall behind. The cost is what a read saves by those chunks, in milliseconds.
 *
 * Departure: an object comes in only if its priority is above all those that would have to leave.
 */

import type { Policy, PolicyCache } from "./policy.ts";

export function gdsf(cache: PolicyCache, chunks: number): Policy {
  const priority = new Map<number, number>();
  const frequency = new Map<number, number>();
  let clock = 0;

  /** Those of lowest priority that would make room, or undefined when one of them is worth more. */
  function victimsFor(object: number, own: number): number[] | undefined {
    let needed = cache.used + chunks * cache.chunkWeight[object]! - cache.capacity;
    const victims: number[] = [];
    const left = new Map(priority);
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
      const size = chunks * cache.chunkWeight[object]!;
      if (size > cache.capacity) return;
      // Counts of objects outside the cache are kept too: without them nothing new could ever win.
      frequency.set(object, (frequency.get(object) ?? 0) + 1);
      const own = clock + (frequency.get(object)! * cache.savedMs(object, chunks)) / size;
      if (cache.countOf(object) === 0) {
        const victims = victimsFor(object, own);
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
  };
}
