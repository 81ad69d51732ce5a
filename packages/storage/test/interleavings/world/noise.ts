/**
 * Numbers that depend on a seed and on what they are for, and on nothing else. When a schedule loses an operation, all
 * other operations keep theirs, so a failing schedule can be shrunk.
 */

/** A number in [0, 1) for `purpose`. */
export function noise(seed: number, ...purpose: readonly number[]): number {
  let state = seed | 0;
  for (const part of purpose) state = mix(state ^ mix(part + 0x9e3779b9));
  return (mix(state) >>> 0) / 2 ** 32;
}

/** Draws one number after the other. */
export class Dice {
  readonly #seed: number;
  readonly #purpose: number;
  #drawn = 0;

  constructor(seed: number, purpose = 0) {
    this.#seed = seed;
    this.#purpose = purpose;
  }

  /** In [0, 1). */
  next(): number {
    return noise(this.#seed, this.#purpose, this.#drawn++);
  }

  /** A whole number from 0 to `below` - 1. */
  below(below: number): number {
    return Math.floor(this.next() * below);
  }

  /** Whether something of this probability happens. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}

/** The finaliser of MurmurHash3. */
function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
