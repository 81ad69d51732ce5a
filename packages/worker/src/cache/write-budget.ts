/** The limits of one period: money for KV operations, and egress for fills. Pure. */
import { Budget } from "../runtime/budget.ts";
import { currentEgress, currentSpending, monthOf, type FillEgress, type Spending } from "./spending.ts";

/** Prices of KV operations, and limits on what the cache manager spends on them. */
export interface SpendingSettings {
  /** A delete costs as much as a write. */
  readonly writeUsdPerMillion: number;
  readonly readUsdPerMillion: number;
  /** Infinity: no limit. */
  readonly usdPerPeriod: number;
  readonly usdPerMonth: number;
}

/** The write budget of one period. */
export class WriteBudget {
  readonly #settings: SpendingSettings;
  readonly #month: string;
  readonly #allowanceUsd: number;
  #writes = 0;
  #reads = 0;
  #heldWrites = 0;

  /** @param spent in earlier periods. */
  constructor(settings: SpendingSettings, spent: Spending | undefined, nowMs: number) {
    this.#settings = settings;
    this.#month = monthOf(nowMs);
    const { usd } = currentSpending(spent, nowMs);
    this.#allowanceUsd = Math.max(0, Math.min(settings.usdPerPeriod, settings.usdPerMonth - usd));
  }

  spend({ writes = 0, reads = 0 }: { readonly writes?: number; readonly reads?: number }): void {
    this.#writes += writes;
    this.#reads += reads;
  }

  /** Sets money aside for writes that every period makes. */
  reserve(writes: number): void {
    this.#heldWrites += writes;
  }

  /** Writes, each with one read before it, that the budget still pays for beside those that others hold. */
  get writesLeft(): number {
    const { writeUsdPerMillion, readUsdPerMillion } = this.#settings;
    const usdEach = (writeUsdPerMillion + readUsdPerMillion) / 1e6;
    const left = this.#allowanceUsd - this.spent.usd - this.#heldWrites * usdEach;
    // Free operations have no limit. The small fraction absorbs rounding errors.
    return usdEach === 0 ? Infinity : Math.max(0, Math.floor(left / usdEach + 1e-6));
  }

  /** Runs `task` and holds `writes` writes for it in the meantime. */
  async hold<T>(writes: number, task: () => Promise<T>): Promise<T> {
    this.#heldWrites += writes;
    try {
      return await task();
    } finally {
      this.#heldWrites -= writes;
    }
  }

  get spent(): Spending {
    return this.priceOf(this.#writes, this.#reads);
  }

  /** Returns the price of so many operations; negative numbers have a negative price. */
  priceOf(writes: number, reads: number): Spending {
    const { writeUsdPerMillion, readUsdPerMillion } = this.#settings;
    return {
      month: this.#month,
      writes,
      reads,
      usd: (writes * writeUsdPerMillion + reads * readUsdPerMillion) / 1e6,
    };
  }
}

/** The limit on bytes that fills fetch from the regions in one day. */
export class EgressBudget extends Budget {
  readonly #day: string;

  /** @param spent in earlier periods. */
  constructor(bytesPerDay: number, spent: FillEgress | undefined, nowMs: number) {
    const { day, bytes } = currentEgress(spent, nowMs);
    super(bytesPerDay - bytes);
    this.#day = day;
  }

  /** Returns so many bytes as egress of this day. */
  of(bytes: number): FillEgress {
    return { day: this.#day, bytes };
  }
}
