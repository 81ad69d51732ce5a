/** Samples a period's requests, so that a policy can replay each within the CPU time of a Cron Trigger. Pure. */

/**
 * Returns `counts` scaled down to `max` in total, or as they are when they are no more. It takes every (total / max)-th
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
