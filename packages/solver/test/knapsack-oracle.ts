/** The textbook multiple-choice knapsack, with one table cell per unit of capacity: a test oracle. */
import type { KnapsackInstance } from "../src/knapsack/index.ts";

/**
 * Returns the optimal value and one choice that reaches it (per object its option counted from 0, or -1).
 * Time and memory are capacity x options and capacity x objects: for small instances only.
 */
export function solveKnapsackNaive(instance: KnapsackInstance): { value: number; weight: number; choice: Int32Array } {
  const { capacity, start, weights, values } = instance;
  const count = start.length - 1;
  let best = new Float64Array(capacity + 1);
  const taken: Int32Array[] = [];
  for (let i = 0; i < count; i++) {
    const next = best.slice();
    const option = new Int32Array(capacity + 1).fill(-1);
    for (let j = start[i]!; j < start[i + 1]!; j++) {
      for (let c = weights[j]!; c <= capacity; c++) {
        const value = best[c - weights[j]!]! + values[j]!;
        if (value > next[c]!) {
          next[c] = value;
          option[c] = j;
        }
      }
    }
    best = next;
    taken.push(option);
  }
  const choice = new Int32Array(count).fill(-1);
  let left = capacity;
  for (let i = count - 1; i >= 0; i--) {
    const j = taken[i]![left]!;
    if (j < 0) continue;
    choice[i] = j - start[i]!;
    left -= weights[j]!;
  }
  return { value: best[capacity]!, weight: capacity - left, choice };
}
