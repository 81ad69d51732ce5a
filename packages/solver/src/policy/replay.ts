/** Replays counted requests to a policy one by one. */
import { SolverError } from "../errors.ts";
import type { Random } from "../random.ts";
import type { Policy } from "./policy.ts";

/**
 * Replays the requests of a past period: `counts[i]` requests for object i, in random order, as independent readers
 * ask. They are evenly spaced from `seconds.from` (included) to `seconds.to` (excluded). The same `random` gives the
 * same order. Returns the number of requests. Throws SCENARIO_INVALID for a count that is not an integer >= 0.
 */
export function replay(
  policy: Pick<Policy, "onRequest">,
  counts: ArrayLike<number>,
  seconds: { readonly from: number; readonly to: number },
  random: Random,
): number {
  let total = 0;
  for (let object = 0; object < counts.length; object++) {
    const count = counts[object]!;
    if (!Number.isSafeInteger(count) || count < 0) {
      throw new SolverError("SCENARIO_INVALID", `counts[${object}] must be an integer >= 0, got ${count}`, {
        object,
        count,
      });
    }
    total += count;
  }
  const asked = new Uint32Array(total);
  let at = 0;
  for (let object = 0; object < counts.length; object++) asked.fill(object, at, (at += counts[object]!));
  const gap = (seconds.to - seconds.from) / total;
  for (let i = 0; i < total; i++) {
    // One step of a Fisher-Yates shuffle before each request.
    const j = i + random.integer(total - i);
    const object = asked[j]!;
    asked[j] = asked[i]!;
    policy.onRequest(object, seconds.from + i * gap);
  }
  return total;
}

/**
 * Returns `counts` scaled down to `max` in total, or as they are when they are no more, so that each can be replayed
 * within the CPU time of a Cron Trigger. It takes every (total / max)-th
 * request of all in a row (systematic sampling), so each object keeps its share to within one request.
 */
export function sampleCounts(counts: Uint32Array, max: number): Uint32Array {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total <= max) return counts;
  const step = total / max;
  let before = 0;
  return counts.map((count) => {
    const from = Math.ceil(before / step - 0.5);
    before += count;
    return Math.ceil(before / step - 0.5) - from;
  });
}
