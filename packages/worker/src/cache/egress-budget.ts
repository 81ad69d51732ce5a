/** The limit on bytes that fills fetch from the regions in one day. Pure. */
import { currentEgress, type FillEgress } from "./spending.ts";

/** The egress budget of one period. */
export class EgressBudget {
  readonly #day: string;
  readonly #allowedBytes: number;
  #spentBytes = 0;
  #heldBytes = 0;

  /** @param spent in earlier periods. */
  constructor(bytesPerDay: number, spent: FillEgress | undefined, nowMs: number) {
    const { day, bytes } = currentEgress(spent, nowMs);
    this.#day = day;
    this.#allowedBytes = bytesPerDay - bytes;
  }

  /** Bytes that this period may still fetch beside those that others hold. */
  get bytesLeft(): number {
    return Math.max(0, this.#allowedBytes - this.#spentBytes - this.#heldBytes);
  }

  /** Bytes that this period has fetched. */
  get spentBytes(): number {
    return this.#spentBytes;
  }

  /** Counts bytes that a region has delivered. */
  spend(bytes: number): void {
    this.#spentBytes += bytes;
  }

  /** Runs `task` and holds `bytes` for it in the meantime. */
  async hold<T>(bytes: number, task: () => Promise<T>): Promise<T> {
    this.#heldBytes += bytes;
    try {
      return await task();
    } finally {
      this.#heldBytes -= bytes;
    }
  }

  /** Returns so many bytes as egress of this day. */
  of(bytes: number): FillEgress {
    return { day: this.#day, bytes };
  }
}
