/** Operations of one invocation: KV reads and writes, fetches, calls of Durable Objects. Workers allow 1,000 KV ones. */

export const OPERATIONS_MAX = 1_000;

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

  spend(operations = 1): void {
    this.#used += operations;
  }

  /** Spends `operations`, or nothing and returns false where fewer are left. */
  take(operations: number): boolean {
    if (this.#used + operations > this.#max) return false;
    this.#used += operations;
    return true;
  }

  /** Whether `operations` more are within the budget, beside those that others hold. */
  allows(operations: number): boolean {
    return this.#used + this.#held + operations <= this.#max;
  }

  /** Runs `task`, which may spend up to `operations`, while others do not count on these. */
  async hold<T>(operations: number, task: () => Promise<T>): Promise<T> {
    this.#held += operations;
    try {
      return await task();
    } finally {
      this.#held -= operations;
    }
  }
}
