/** Operations of one invocation: KV reads and writes, fetches, calls of Durable Objects. Workers allow 1,000 KV ones. */

export const OPERATIONS_MAX = 1_000;

export class Budget {
  readonly #max: number;
  #used = 0;

  constructor(max = OPERATIONS_MAX) {
    this.#max = max;
  }

  get used(): number {
    return this.#used;
  }

  spend(operations = 1): void {
    this.#used += operations;
  }

  /** Whether `operations` more are within the budget. */
  allows(operations: number): boolean {
    return this.#used + operations <= this.#max;
  }
}
