/**
 * What the chunk cache may cost: KV operations in money, per period and per month. Pure.
 *
 * Prices are variables of the Worker. The defaults are Cloudflare's for Workers Paid, beyond what is included
 * (developers.cloudflare.com/kv/platform/pricing, 2026): $5.00 per million writes or deletes, $0.50 per million reads.
 */
export interface SpendingSettings {
  /** A deleted key costs as much as a written one. */
  readonly writeUsdPerMillion: number;
  readonly readUsdPerMillion: number;
  /** Infinity: no limit. */
  readonly usdPerPeriod: number;
  readonly usdPerMonth: number;
}

/** What the cache manager and purges have spent in a calendar month, UTC. */
export interface Spending {
  /** As in "2026-11". */
  readonly month: string;
  readonly writes: number;
  readonly reads: number;
  readonly usd: number;
}

export function monthOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 7);
}

/** What was spent in the month that it is now. */
export function currentSpending(spent: Spending | undefined, nowMs: number): Spending {
  const month = monthOf(nowMs);
  return spent?.month === month ? spent : { month, writes: 0, reads: 0, usd: 0 };
}

/** `before` and `more`, which may be less than nothing; a month that is over does not count. */
export function addSpending(before: Spending | undefined, more: Spending): Spending {
  if (before && before.month > more.month) return before;
  if (before?.month !== more.month) return more.usd < 0 ? { month: more.month, writes: 0, reads: 0, usd: 0 } : more;
  return {
    month: more.month,
    writes: before.writes + more.writes,
    reads: before.reads + more.reads,
    usd: before.usd + more.usd,
  };
}

/** What one period may still spend, and has spent. */
export class Purse {
  readonly #settings: SpendingSettings;
  readonly #month: string;
  readonly #allowanceUsd: number;
  #writes = 0;
  #reads = 0;
  #heldWrites = 0;

  /** @param spent in all periods before. */
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

  /** Keeps money for writes that come whatever else there is. */
  reserve(writes: number): void {
    this.#heldWrites += writes;
  }

  /** Writes, each with one read before it, that there is money for beside those which others hold. */
  get writesLeft(): number {
    const { writeUsdPerMillion, readUsdPerMillion } = this.#settings;
    const usdEach = (writeUsdPerMillion + readUsdPerMillion) / 1e6;
    const left = this.#allowanceUsd - this.spent.usd - this.#heldWrites * usdEach;
    // A price of nothing buys any number; the smallest fraction is rounding.
    return usdEach === 0 ? Infinity : Math.max(0, Math.floor(left / usdEach + 1e-6));
  }

  /** Runs `task`, which may make so many writes, while others do not count on these. */
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
