/** Operations of one invocation: KV reads and writes, fetches, calls of Durable Objects. */

/** Workers allow one invocation 1,000 KV operations. */
export const OPERATIONS_MAX = 1_000;

/** Counts operations against a maximum. */
export class OperationBudget {
  readonly #max: number;
  #used = 0;
  #held = 0;

  constructor(max = OPERATIONS_MAX) {
    this.#max = max;
  }

  /** Operations spent. */
  get used(): number {
    return this.#used;
  }

  /** Spends `operations`, even beyond the maximum. */
  spend(operations = 1): void {
    this.#used += operations;
  }

  /** Spends `operations` and returns true, or spends nothing and returns false where fewer are left. */
  take(operations: number): boolean {
    if (this.#used + operations > this.#max) return false;
    this.#used += operations;
    return true;
  }

  /** Returns whether `operations` more fit beside those that others hold. */
  allows(operations: number): boolean {
    return this.#used + this.#held + operations <= this.#max;
  }

  /** Runs `task` and holds `operations` for it in the meantime. */
  async hold<T>(operations: number, task: () => Promise<T>): Promise<T> {
    this.#held += operations;
    try {
      return await task();
    } finally {
      this.#held -= operations;
    }
  }
}
