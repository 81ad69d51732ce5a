/**
 * The request monitor: one shard of the request counts of a PoP, and the popularity made of them each period.
 *
 * Popularity is Agar's (ICDCS'17, section IV): an exponentially weighted moving average of the requests per period with
 * alpha = 0.8 on the newest. A shard keeps so many keys and no more, whatever comes: in a period, a new key of a full shard
 * takes the place of another one only when it was asked for more often of late (TinyLFU); between periods the most popular
 * ones stay. The counts of the running period are in memory, because rows cost money, and are lost with the object;
 * popularity is one blob, written once a period.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "./env.ts";
import { RequestTally, SHARD_KEYS_MAX } from "./request-tally.ts";
import { SqlBlob } from "./sql-blob.ts";

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

export class RequestMonitor extends DurableObject<Env> {
  readonly #pending = new RequestTally(SHARD_KEYS_MAX);
  readonly #stored: SqlBlob;
  /** By key, most popular first. */
  #popularity: Map<string, number>;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#stored = new SqlBlob(state.storage.sql, "popularity");
    const bytes = this.#stored.load();
    this.#popularity = new Map(bytes ? (JSON.parse(new TextDecoder().decode(bytes)) as [string, number][]) : []);
  }

  /** Adds requests by key to the running period. */
  count(entries: readonly (readonly [key: string, requests: number])[]): void {
    for (const [key, requests] of entries) this.#pending.add(key, requests);
  }

  /** Ends the running period and returns the `limit` most popular keys, most popular first. */
  closePeriod(limit: number): KeyRequests[] {
    const requests = this.#pending.drain();
    const keys = new Set([...this.#popularity.keys(), ...requests.keys()]);
    const popularity = Array.from(keys, (key): [string, number] => {
      return [key, ALPHA * (requests.get(key) ?? 0) + (1 - ALPHA) * (this.#popularity.get(key) ?? 0)];
    });
    const kept = popularity
      .filter(([, value]) => value >= POPULARITY_MIN)
      .toSorted(([a, most], [b, least]) => least - most || (a < b ? -1 : 1))
      .slice(0, SHARD_KEYS_MAX);
    this.#popularity = new Map(kept);
    this.#stored.save(new TextEncoder().encode(JSON.stringify(kept)));
    return this.popular(limit).map((entry) => ({ ...entry, requests: requests.get(entry.key) ?? 0 }));
  }

  /** The `limit` most popular keys as of the last closed period, most popular first. */
  popular(limit: number): KeyPopularity[] {
    return [...this.#popularity].slice(0, limit).map(([key, popularity]) => ({ key, popularity }));
  }
}
