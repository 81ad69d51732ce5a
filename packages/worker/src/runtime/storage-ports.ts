/**
 * The storage that the application needs, on any platform: Workers KV and Durable Objects at Cloudflare, files and
 * SQLite on Node. Types only. The suites of `*.pop.workerd.test.ts` run over both.
 */
import type { Sql } from "./sql.ts";

/**
 * Values by name: the chunk cache and the configuration. A value is there as a whole or not at all, and may be as old
 * as a minute: readers verify every chunk, and values that change carry an epoch. Each method may reject.
 */
export interface ValueStore {
  /** Resolves to null where there is no value. */
  get(name: string): Promise<string | null>;
  get(name: string, type: "arrayBuffer"): Promise<ArrayBuffer | null>;
  put(name: string, value: string | ArrayBuffer): Promise<void>;
  /** A name without a value is not an error. */
  delete(name: string): Promise<void>;
}

/**
 * * The private storage of one named object. There is one instance of each name, and a call that awaits nothing is
 * written entirely or not at all.
 */
export interface ObjectStore {
  readonly sql: Sql;
  /** When `alarm()` of the object is called, in milliseconds since 1970; null for never. It outlives the process. */
  getAlarm(): Promise<number | null> | number | null;
  setAlarm(at: number): Promise<void> | void;
}
