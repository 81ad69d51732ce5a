/**
 * The request monitor: one shard of the request counts of a PoP, and the popularity made of them each period.
 *
 * Popularity is Agar's (ICDCS'17, section IV): an exponentially weighted moving average of the requests per period with
 * alpha = 0.8 on the newest. A shard keeps so many keys and no more, whatever comes: a new key of a full shard takes the
 * place of another one only when it was asked for more often of late (TinyLFU). The sketch that tells is in memory, and
 * costs some accuracy when it is lost.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "./env.ts";
import { FrequencySketch } from "./frequency-sketch.ts";
import { admits, SHARD_KEYS_MAX } from "./request-tally.ts";

export interface KeyPopularity {
  readonly key: string;
  /** Requests per period, averaged. */
  readonly popularity: number;
}

export interface KeyRequests extends KeyPopularity {
  /** In the period that ended. */
  readonly requests: number;
}

/** Weight of the newest period (Agar, section V-A). */
const ALPHA = 0.8;
/** Below this a key is forgotten: less than one request in some hundred periods. */
const POPULARITY_MIN = 0.005;

type Row = { id: number; key: string; pending: number; popularity: number };

export class RequestMonitor extends DurableObject<Env> {
  readonly #sql: SqlStorage;
  readonly #sketch = new FrequencySketch(SHARD_KEYS_MAX);
  #keys: number;
  /** Row that competes next with a new key: they take turns. */
  #hand = 0;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#sql = state.storage.sql;
    this.#sql.exec(
      "CREATE TABLE IF NOT EXISTS requests (key TEXT PRIMARY KEY, pending INTEGER NOT NULL, popularity REAL NOT NULL)",
    );
    this.#keys = this.#countKeys();
  }

  /** Adds requests by key to the running period. */
  count(entries: readonly (readonly [key: string, requests: number])[]): void {
    for (const [key, requests] of entries) {
      this.#sketch.add(key, requests);
      const updated = this.#sql.exec("UPDATE requests SET pending = pending + ? WHERE key = ?", requests, key);
      if (updated.rowsWritten === 0 && this.#makeRoom(key)) {
        this.#sql.exec("INSERT INTO requests (key, pending, popularity) VALUES (?, ?, 0)", key, requests);
        this.#keys++;
      }
    }
  }

  /** Ends the running period and returns the `limit` most popular keys, most popular first. */
  closePeriod(limit: number): KeyRequests[] {
    const requests = new Map(
      this.#sql
        .exec<{ key: string; pending: number }>("SELECT key, pending FROM requests WHERE pending > 0")
        .toArray()
        .map(({ key, pending }) => [key, pending]),
    );
    this.ctx.storage.transactionSync(() => {
      this.#sql.exec(
        "UPDATE requests SET popularity = ?1 * pending + (1 - ?1) * popularity, pending = 0 WHERE popularity > 0 OR pending > 0",
        ALPHA,
      );
      this.#sql.exec("DELETE FROM requests WHERE popularity < ?", POPULARITY_MIN);
    });
    this.#keys = this.#countKeys();
    return this.popular(limit).map((entry) => ({ ...entry, requests: requests.get(entry.key) ?? 0 }));
  }

  /** The `limit` most popular keys as of the last closed period, most popular first. */
  popular(limit: number): KeyPopularity[] {
    return this.#sql
      .exec<{ key: string; popularity: number }>(
        "SELECT key, popularity FROM requests WHERE popularity > 0 ORDER BY popularity DESC, key LIMIT ?",
        limit,
      )
      .toArray();
  }

  /** Whether there is room for a new key, or was made. */
  #makeRoom(key: string): boolean {
    if (this.#keys < SHARD_KEYS_MAX) return true;
    const victim = this.#rowAfter(this.#hand) ?? this.#rowAfter(0);
    if (!victim) return true;
    this.#hand = victim.id;
    if (!admits(this.#sketch, key, victim.key, victim.pending + victim.popularity)) return false;
    this.#sql.exec("DELETE FROM requests WHERE key = ?", victim.key);
    this.#keys--;
    return true;
  }

  #rowAfter(id: number): Row | undefined {
    const next = "SELECT rowid AS id, key, pending, popularity FROM requests WHERE rowid > ? ORDER BY rowid LIMIT 1";
    return this.#sql.exec<Row>(next, id).toArray()[0];
  }

  #countKeys(): number {
    return this.#sql.exec<{ keys: number }>("SELECT count(*) AS keys FROM requests").one().keys;
  }
}
