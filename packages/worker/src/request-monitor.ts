/**
 * The request monitor: one shard of the request counts of a PoP, and the popularity made of them each period.
 *
 * Popularity is Agar's (ICDCS'17, section IV): an exponentially weighted moving average of the requests per period with
 * alpha = 0.8 on the newest.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "./env.ts";

export interface KeyPopularity {
  readonly key: string;
  /** Requests per period, averaged. */
  readonly popularity: number;
}

/** Keys that one shard keeps; further ones are not counted until others have faded. */
const KEYS_MAX = 50_000;
/** Weight of the newest period (Agar, section V-A). */
const ALPHA = 0.8;
/** Below this a key is forgotten: less than one request in some hundred periods. */
const POPULARITY_MIN = 0.005;

export class RequestMonitor extends DurableObject<Env> {
  readonly #sql: SqlStorage;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#sql = state.storage.sql;
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, pending INTEGER NOT NULL, popularity REAL NOT NULL)",
    );
  }

  /** Adds requests by key to the running period. */
  count(entries: readonly (readonly [key: string, requests: number])[]): void {
    const known = this.#sql.exec<{ keys: number }>("SELECT count(*) AS keys FROM requests").one().keys;
    let free = KEYS_MAX - known;
    for (const [key, requests] of entries) {
      const updated = this.#sql.exec("UPDATE requests SET pending = pending + ? WHERE key = ?", requests, key);
      if (updated.rowsWritten > 0 || free <= 0) continue;
      this.#sql.exec("INSERT INTO requests (key, pending, popularity) VALUES (?, ?, 0)", key, requests);
      free--;
    }
  }

  /** Ends the running period and returns the `limit` most popular keys, most popular first. */
  closePeriod(limit: number): KeyPopularity[] {
    this.ctx.storage.transactionSync(() => {
      this.#sql.exec("UPDATE requests SET popularity = ?1 * pending + (1 - ?1) * popularity, pending = 0", ALPHA);
      this.#sql.exec("DELETE FROM requests WHERE popularity < ?", POPULARITY_MIN);
    });
    return this.#sql
      .exec<{ key: string; popularity: number }>(
        "SELECT key, popularity FROM requests ORDER BY popularity DESC, key LIMIT ?",
        limit,
      )
      .toArray();
  }
}
