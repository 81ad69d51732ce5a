/** The ledger of the chunk cache, and the report of a period: the records that `PopState` keeps. */
import type { Savings } from "@agarose/solver/planner";

/** An object in the chunk cache, as the cache manager knows it. */
export interface LedgerEntry {
  readonly version: string;
  readonly key: string;
  readonly stripes: number;
  /** Bytes of one chunk, over all stripes. */
  readonly chunkBytes: number;
  /** Chunks that every stripe has: what plans may promise. */
  readonly chunks: readonly number[];
  /** Chunks that every stripe shall have; empty while the object is being evicted. */
  readonly target: readonly number[];
  /** Stripes 0 to `done` - 1 have the target already. */
  readonly done: number;
}

/** How an exchange went. */
export interface ExchangeReport {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly ms: number;
  /** Keys with requests since the last one. */
  readonly asked: number;
  /** Objects that the Cache API has been given now, and bytes that regions have delivered for them. */
  readonly added: number;
  readonly fetchedBytes: number;
  /** Objects that plans name as probable. */
  readonly kept: number;
  /** Errors as `CODE: message`; at most 20. */
  readonly errors: readonly string[];
}

/** How a period went. */
export interface PeriodReport {
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly ms: number;
  readonly epoch: number;
  readonly candidates: number;
  /** The most popular keys, in requests per period. */
  readonly popular: readonly { readonly key: string; readonly popularity: number }[];
  /** Stripes written and removed. */
  readonly written: number;
  readonly evicted: number;
  /** Chunks rebuilt from others because their region did not deliver them. */
  readonly reconstructed: number;
  /** Bytes that fills have fetched themselves, and new bytes in the cache. */
  readonly fetchedBytes: number;
  readonly filledBytes: number;
  /** Work left for the next period, in stripes. */
  readonly left: number;
  /** Stripes that the egress budget of the day refused to fill. */
  readonly refused: number;
  /** Work that waits for money, in stripes. */
  readonly waiting: number;
  /** Estimated savings of each idea of the papers; absent without requests. */
  readonly savings?: Savings;
  /** The price of this period's KV operations. */
  readonly usd: number;
  readonly operations: number;
  /** Errors as `CODE: message`; at most 20. */
  readonly errors: readonly string[];
}
