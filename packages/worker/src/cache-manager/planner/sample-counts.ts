/** So many of a period's requests that a policy can be told of each within the CPU time of a Cron Trigger. Pure. */

/**
 * `counts` scaled down to `max` in all, or as they are when they are no more: every (total / max)-th request of all of them in
 * a row (systematic sampling), so that each object keeps its share to within one request.
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
