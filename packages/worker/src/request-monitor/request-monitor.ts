/**
 * The request monitor: one shard of the request counts of a PoP, and the popularity made of them each period.
 *
 * Popularity is Agar's (ICDCS'17, section IV): an exponentially weighted moving average of the requests per period with
 * alpha = 0.8 on the newest. A shard keeps so many keys and no more, whatever comes: in a period, a new key of a full shard
 * takes the place of another one only when it was asked for more often of late (TinyLFU); between periods the most popular
 * ones stay. Popularity is one blob, written once a period. The counts of the running period are in memory, and in one row that
 * is written at most every five seconds: a platform that restarts or evicts the object takes away no more than these.
 */
import { DurableObject } from "cloudflare:workers";
import type { Env } from "../http/settings.ts";
import { RequestTally, SHARD_KEYS_MAX } from "./request-tally.ts";
import { decodeCounts, encodeCounts } from "./saved-counts.ts";
import { SqlBlob } from "../platform/sql.ts";

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
/**
 * Counts wait so long before they are written, and many are written at once. An object without requests for ten seconds may be
 * taken from memory, but not while a timer is set (https://developers.cloudflare.com/durable-objects/concepts/durable-object-lifecycle/).
 */
const SAVE_AFTER_MS = 5_000;

export class RequestMonitor extends DurableObject<Env> {
  readonly #pending = new RequestTally(SHARD_KEYS_MAX);
  readonly #stored: SqlBlob;
  readonly #saved: SqlBlob;
  #saveTimer: ReturnType<typeof setTimeout> | null = null;
  /** By key, most popular first. */
  #popularity: Map<string, number>;
  /** The newest publication of `PeerState`. In memory alone: KV brings what is lost with the object. */
  #peersEpoch = 0;

  constructor(state: DurableObjectState, env: Env) {
    super(state, env);
    this.#stored = new SqlBlob(state.storage.sql, "popularity");
    const bytes = this.#stored.load();
    this.#popularity = new Map(bytes ? decodeCounts(bytes) : []);
    this.#saved = new SqlBlob(state.storage.sql, "counts");
    const saved = this.#saved.load();
    if (saved) for (const [key, requests] of decodeCounts(saved)) this.#pending.add(key, requests);
  }

  /** Adds requests by key to the running period; returns the number of the newest publication of `PeerState`. */
  count(entries: readonly (readonly [key: string, requests: number])[]): number {
    for (const [key, requests] of entries) this.#pending.add(key, requests);
    this.#saveTimer ??= setTimeout(() => this.#save(), SAVE_AFTER_MS);
    return this.#peersEpoch;
  }

  /** Has isolates that hand on their counts hear of publication `epoch` of `PeerState`. */
  notePeers(epoch: number): void {
    this.#peersEpoch = Math.max(this.#peersEpoch, epoch);
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
    clearTimeout(this.#saveTimer);
    this.#saveTimer = null;
    this.#saved.clear();
    return this.popular(limit).map((entry) => ({ ...entry, requests: requests.get(entry.key) ?? 0 }));
  }

  /** The `limit` most popular keys as of the last closed period, most popular first. */
  popular(limit: number): KeyPopularity[] {
    return [...this.#popularity].slice(0, limit).map(([key, popularity]) => ({ key, popularity }));
  }
  #save(): void {
    this.#saveTimer = null;
    this.#saved.save(encodeCounts(this.#pending.counts));
  }
}
