/**
 * The request monitor: one shard of the request counts of a PoP, and the popularity that each period makes of them.
 *
 * Popularity is Agar's (ICDCS'17, section IV): an exponentially weighted moving average of the requests per period with
 * alpha = 0.8 on the newest. A shard keeps a fixed number of keys. In a full shard, a new key replaces another one only
 * if it was requested more often recently (TinyLFU); between periods the most popular keys stay.
 *
 * Popularity is one blob, written once a period. The counts of the running period are in memory, and in one row that a
 * batch writes when the last write is five seconds old. A restart or an eviction loses at most the batches of the five
 * seconds after a write.
 */
import { DurableObject } from "cloudflare:workers";
import { FillCandidates, parseFillClientsMin } from "./fill-candidates.ts";
import { RequestTally, SHARD_KEYS_MAX, type CountedKey } from "./request-tally.ts";
import { decodeCounts, encodeCounts } from "./saved-counts.ts";
import { findColo } from "../runtime/durable-objects.ts";
import { SqlBlob } from "../runtime/sql.ts";

/** How popular a key is. */
export interface KeyPopularity {
  readonly key: string;
  /** Requests per period, averaged. */
  readonly popularity: number;
  /** Whether enough clients have asked for it today (`FILL_CLIENTS_MIN`). */
  readonly mayFill: boolean;
}

/** How popular a key is, and how often it was requested. */
export interface KeyRequests extends KeyPopularity {
  /** In the period that ended, or that continues, without those that an earlier exchange has had. */
  readonly requests: number;
}

/** Weight of the newest period (Agar, section V-A). */
const ALPHA = 0.8;
/** A key below this is forgotten: less than one request in some hundred periods. */
const POPULARITY_MIN = 0.005;
/**
 * The least time between two writes of the counts. No timer writes the last batch: Cloudflare bills an object for its
 * time in memory while a timer is set, and an idle object without one costs nothing
 * (developers.cloudflare.com/durable-objects/platform/pricing).
 */
const SAVE_INTERVAL_MS = 5_000;

/** One shard. Its public methods are called by RPC. */
export class RequestMonitor extends DurableObject {
  readonly #pending = new RequestTally(SHARD_KEYS_MAX);
  readonly #candidates: FillCandidates;
  readonly #stored: SqlBlob;
  readonly #saved: SqlBlob;
  /** When the counts were last written, of this object's clock. */
  #savedMs = Number.NEGATIVE_INFINITY;
  /** By key, most popular first. */
  #popularity: Map<string, number>;
  /** Requests of the running period that exchanges have had. In memory only: a restart gives them out twice. */
  #exchanged: ReadonlyMap<string, number> = new Map();
  /** The newest publication of `PeerState`. In memory only: KV has it too. */
  #peersEpoch = 0;

  constructor(state: DurableObjectState, env: object) {
    super(state, env);
    this.#candidates = new FillCandidates({ clientsMin: parseFillClientsMin(env), now: Date.now });
    this.#stored = new SqlBlob(state.storage.sql, "popularity");
    const bytes = this.#stored.load();
    this.#popularity = new Map(bytes ? decodeCounts(bytes) : []);
    this.#saved = new SqlBlob(state.storage.sql, "counts");
    const saved = this.#saved.load();
    if (saved) for (const [key, requests] of decodeCounts(saved)) this.#pending.add(key, requests);
  }

  /** Adds requests by key to the running period; resolves to the number of the newest publication of `PeerState`. */
  async count(entries: readonly CountedKey[]): Promise<number> {
    await this.#candidates.note(entries.map(([key, , clients = []]) => [key, clients]));
    for (const [key, requests] of entries) this.#pending.add(key, requests);
    this.#saveSometimes(Date.now());
    return this.#peersEpoch;
  }

  /** Announces publication `epoch` of `PeerState` to isolates that hand on their counts. */
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
    const exchanged = this.#exchanged;
    this.#exchanged = new Map();
    this.#popularity = new Map(kept);
    this.#stored.save([new TextEncoder().encode(JSON.stringify(kept))]);
    this.#saved.clear();
    return this.popular(limit).map((entry) => {
      // A full shard may have begun to count a key again.
      const left = (requests.get(entry.key) ?? 0) - (exchanged.get(entry.key) ?? 0);
      return { ...entry, requests: Math.max(0, left) };
    });
  }

  /**
   * Returns the `limit` most popular keys with requests since the last exchange or period, most popular first. Their
   * popularity is the last period's, or what it would be if this one ended now.
   */
  exchange(limit: number): KeyRequests[] {
    const before = this.#exchanged;
    const counts = this.#pending.counts;
    this.#exchanged = new Map(counts);
    return Array.from(counts, ([key, count]): KeyRequests => {
      const popularity = Math.max(this.#popularity.get(key) ?? 0, ALPHA * count);
      return { key, popularity, mayFill: this.#candidates.has(key), requests: count - (before.get(key) ?? 0) };
    })
      .filter(({ requests }) => requests > 0)
      .toSorted((a, b) => b.popularity - a.popularity)
      .slice(0, limit);
  }

  /** Removes keys from the popularity: nothing is stored under them. */
  forget(keys: readonly string[]): void {
    for (const key of keys) this.#popularity.delete(key);
  }

  /** Returns the `limit` most popular keys as of the last closed period, most popular first. */
  popular(limit: number): KeyPopularity[] {
    return [...this.#popularity].slice(0, limit).map(([key, popularity]) => {
      return { key, popularity, mayFill: this.#candidates.has(key) };
    });
  }

  /** Resolves to the data center that runs this object, or to null where that cannot be found out. */
  colo(): Promise<string | null> {
    return findColo();
  }

  /** A clock that is set back does not stop the writes. */
  #saveSometimes(nowMs: number): void {
    if (Math.abs(nowMs - this.#savedMs) < SAVE_INTERVAL_MS) return;
    this.#savedMs = nowMs;
    this.#saved.save([encodeCounts(this.#pending.counts)]);
  }
}
