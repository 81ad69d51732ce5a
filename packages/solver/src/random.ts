/** Seeded randomness, the only source of chance in this package: equal seeds give equal results. */

/** A stream of random numbers. */
export interface Random {
  /** Uniform in [0, 1), with 32 bits. */
  next(): number;
  /** Normal with mean 0 and deviation 1. */
  normal(): number;
  /** Exponential with mean 1. */
  exponential(): number;
  /** Uniform integer in [0, below). */
  integer(below: number): number;
  /** Shuffles the list in place (Fisher-Yates) and returns it. */
  shuffle<T>(list: T[]): T[];
  /** Returns an independent stream for `label`, an integer >= 0. Drawing from one stream does not move the other. */
  fork(label: number): Random;
}

/** Creates the generator sfc32 (Doty-Humphrey) from a seed, an integer from 0 to 2^53. */
export function seededRandom(seed: number): Random {
  let a = seed | 0;
  let b = Math.floor(seed / 4294967296) | 0;
  let c = 0x9e3779b9 | 0;
  let d = 1;
  const next = (): number => {
    const t = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (c << 21) | (c >>> 11);
    c = (c + t) | 0;
    return (t >>> 0) / 4294967296;
  };
  for (let i = 0; i < 16; i++) next();
  return {
    next,
    normal: () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next()),
    exponential: () => -Math.log(1 - next()),
    integer: (below) => Math.floor(next() * below),
    shuffle: (list) => {
      for (let i = list.length - 1; i > 0; i--) {
        const j = Math.floor(next() * (i + 1));
        [list[i], list[j]] = [list[j]!, list[i]!];
      }
      return list;
    },
    fork: (label) => seededRandom((Math.imul(seed | 0, 0x85ebca6b) ^ Math.imul(label + 1, 0xc2b2ae35)) >>> 0),
  };
}

/** Returns the sum of the weights up to and including each one, for `sampleIndex`. */
export function cumulate(weights: Iterable<number>): Float64Array {
  let sum = 0;
  return Float64Array.from(weights, (weight) => (sum += weight));
}

/**
 * Samples an index with a probability in proportion to its weight. `cumulative` is what `cumulate` returns; at least
 * one weight is above 0.
 */
export function sampleIndex(cumulative: ArrayLike<number>, random: Random): number {
  let high = cumulative.length - 1;
  const target = random.next() * cumulative[high]!;
  let low = 0;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cumulative[middle]! > target) high = middle;
    else low = middle + 1;
  }
  return low;
}
