/** Limits of one invocation, or of one period: operations (KV, fetches, calls of Durable Objects), or bytes. */

/** Workers allow one invocation 1,000 KV operations. */
export const OPERATIONS_MAX = 1_000;

/** Counts what is spent against a maximum. */
export class Budget {
  readonly #max: number;
  #used = 0;
  #held = 0;

  constructor(max = OPERATIONS_MAX) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  /** What is left beside what others hold. */
  get left(): number {
    return Math.max(0, this.#max - this.#used - this.#held);
  }

  /** Spends `amount`, even beyond the maximum. */
  spend(amount = 1): void {
    this.#used += amount;
  }

  /** Spends `amount` and returns true, or spends nothing and returns false where less is left. */
  take(amount: number): boolean {
    if (this.#used + amount > this.#max) return false;
    this.#used += amount;
    return true;
  }

  /** Returns whether `amount` more fits beside what others hold. */
  allows(amount: number): boolean {
    return this.#used + this.#held + amount <= this.#max;
  }

  /** Runs `task` and holds `amount` for it in the meantime. */
  async hold<T>(amount: number, task: () => Promise<T>): Promise<T> {
    this.#held += amount;
    try {
      return await task();
    } finally {
      this.#held -= amount;
    }
  }
}
