/** Projection onto the probabilities that ask for a given number of chunks. */
import type { SproutFile } from "./files.ts";

/**
 * Returns the nearest probabilities to `from` + `move` that are between 0 and 1 at the file's servers, 0 elsewhere, and
 * sum to `total`: all are shifted alike and cut off, and the shift is found between the points where one is cut off.
 */
export function projectOnto(
  { servers }: SproutFile,
  total: number,
  from: Float64Array,
  move: (server: number) => number = () => 0,
): Float64Array {
  const projected = new Float64Array(from.length);
  const wanted = servers.map((j) => Math.max(-FAR, Math.min(FAR, from[j]! + move(j))));
  const sumAt = (shift: number): number => wanted.reduce((sum, one) => sum + clamp(one - shift), 0);
  // The sum falls in the shift; between two neighbouring corners it falls linearly.
  const corners = wanted.flatMap((one) => [one - 1, one]).toSorted((a, b) => a - b);
  let low = 0;
  let high = corners.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (sumAt(corners[middle]!) >= total) low = middle;
    else high = middle;
  }
  const above = sumAt(corners[low]!);
  const below = sumAt(corners[high]!);
  const share = above > below ? Math.max(0, Math.min(1, (above - total) / (above - below))) : 0;
  const shift = corners[low]! + share * (corners[high]! - corners[low]!);
  for (const [s, j] of servers.entries()) projected[j] = clamp(wanted[s]! - shift);
  return projected;
}

/** In place of infinity: far beyond any probability, and still with digits left. */
const FAR = 1e6;

function clamp(probability: number): number {
  return Math.max(0, Math.min(1, probability));
}
