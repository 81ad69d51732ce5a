/** Random samples of the storage nodes' study. */
import type { Random } from "@agarose/solver/random";

/** Returns a function that samples an index with probability proportional to its weight. */
export function weighted(weights: readonly number[], random: Random): () => number {
  let sum = 0;
  const cumulative = weights.map((weight) => (sum += weight));
  return () => {
    const target = random.next() * sum;
    return Math.min(
      cumulative.findIndex((upTo) => target < upTo),
      weights.length - 1,
    );
  };
}

/** Returns a function that samples an object by Zipf's law. */
export function zipf(objects: number, exponent: number, random: Random): () => number {
  return weighted(
    Array.from({ length: objects }, (_, rank) => (rank + 1) ** -exponent),
    random,
  );
}
