/**
 * The sending side of C2P (ICDCN 2015, sections 3.2 and 3.3). It gathers what happens in a node's cache for 200 ms,
 * puts several events of one object into one statement (aggregation), and drops events when there are too many
 * (filtering).
 *
 * Departures: the paper does not print which events it drops. Ours drops reads, of the least read objects first. It
 * never drops what a cache holds; that waits for the next message. It keeps counting hits of objects that have left the
 * cache.
 */
import { checked } from "../checked.ts";
import { asInteger, asNumber } from "./checks.ts";
import { chunksSchema, type CacheMessage, type CacheStatement } from "./cache-message.ts";
import { decayedHits } from "./hit-decay.ts";

/** How a node gathers its events. Numbers out of range throw REQUEST_INVALID. */
export interface CacheEventsSettings {
  /** An integer >= 0 that grows with every start of a node that may have lost its memory. Default 0. */
  readonly epoch?: number;
  /** How long the node gathers events before a message, >= 0. Default 200. */
  readonly gatherMs?: number;
  /** Statements in one message, at least 1; the filter drops the rest. Default 256. */
  readonly statementsMax?: number;
  /** Objects outside the cache whose hits are counted. Default 10,000. */
  readonly othersMax?: number;
}

/** After so many periods all that is held is stated again, whatever the peers have received. */
const DIGEST_PERIODS = 10;

interface Entry {
  chunks: readonly number[];
  hits: number;
  readMs: number;
}

/** Gathers one node's cache events into messages. */
export class CacheEvents {
  readonly node: string;
  readonly epoch: number;
  dropped = 0;
  /** When the next message is due, in ms; Infinity while there is nothing to report. */
  dueMs = Infinity;
  readonly #gatherMs: number;
  readonly #statementsMax: number;
  readonly #othersMax: number;
  readonly #held = new Map<string, Entry>();
  /** Least recently read first. */
  readonly #others = new Map<string, Entry>();
  /** Keys that the next message reports: true when the held chunks changed, false for a mere read. */
  readonly #news = new Map<string, boolean>();
  /** Keys whose chunks have changed since the last digest. */
  readonly #changed = new Set<string>();
  #digestMs: number | undefined;
  #periodsSinceDigest = 0;
  #lastStatedMs = -Infinity;

  constructor(node: string, settings: CacheEventsSettings = {}) {
    this.node = node;
    this.epoch = asInteger(settings.epoch ?? 0, "epoch", 0);
    this.#gatherMs = asNumber(settings.gatherMs ?? 200, "gatherMs", 0);
    this.#statementsMax = asInteger(settings.statementsMax ?? 256, "statementsMax", 1);
    this.#othersMax = asInteger(settings.othersMax ?? 10_000, "othersMax", 0);
  }

  /** Counts a read of the object at this node, from its cache or not. */
  recordRead(key: string, nowMs: number): void {
    const now = asNumber(nowMs, "nowMs");
    const { chunks, hits, readMs } = this.#entryOf(key, now);
    this.#store(key, { chunks, hits: decayedHits(hits, readMs, now) + 1, readMs: Math.max(readMs, now) });
    this.#announce(key, false, now);
  }

  /** Records that the cache holds these chunks (ascending) from now on; none when the object has left. */
  recordHeld(key: string, chunks: readonly number[], nowMs: number): void {
    const now = asNumber(nowMs, "nowMs");
    this.#store(key, {
      ...this.#entryOf(key, now),
      chunks: checked(chunksSchema, chunks, "chunks", "REQUEST_INVALID"),
    });
    this.#changed.add(key);
    this.#announce(key, true, now);
  }

  /** Returns the message that is due, or undefined before `dueMs`. */
  take(nowMs: number): CacheMessage | undefined {
    if (asNumber(nowMs, "nowMs") < this.dueMs) return undefined;
    const reported = this.#filter();
    for (const key of reported) this.#news.delete(key);
    this.dueMs = this.#news.size > 0 ? nowMs + this.#gatherMs : Infinity;
    return this.#compose(reported, nowMs, false);
  }

  /** Returns a complete message of all that is held: for a new peer, and at intervals to repair lost messages. */
  digest(nowMs: number): CacheMessage {
    const digest = this.#compose([...this.#held.keys()], asNumber(nowMs, "nowMs"), true);
    this.#changed.clear();
    this.#digestMs = digest.statedMs;
    this.#periodsSinceDigest = 0;
    return digest;
  }

  /** When the last digest was made; undefined before the first one. */
  get digestMs(): number | undefined {
    return this.#digestMs;
  }

  /**
   * Returns the message of a period: all that has changed since the last digest, which repairs lost messages as it
   * does. It is a digest if one is wanted, due or as short.
   */
  ofPeriod(nowMs: number, isDigestWanted: boolean): CacheMessage {
    const isDue = this.#digestMs === undefined || ++this.#periodsSinceDigest >= DIGEST_PERIODS;
    if (isDigestWanted || isDue || this.#changed.size >= this.#held.size) return this.digest(nowMs);
    return this.#compose([...this.#changed], asNumber(nowMs, "nowMs"), false);
  }

  /** Keys of the next message. It drops reads beyond `statementsMax`, those of the fewest hits first. */
  #filter(): string[] {
    const keys = [...this.#news.keys()];
    if (keys.length <= this.#statementsMax) return keys;
    const hitsOf = (key: string): number => (this.#held.get(key) ?? this.#others.get(key))?.hits ?? 0;
    const changes = keys.filter((key) => this.#news.get(key)!);
    const reads = keys.filter((key) => !this.#news.get(key)!).toSorted((a, b) => hitsOf(b) - hitsOf(a));
    const room = Math.max(0, this.#statementsMax - changes.length);
    for (const key of reads.slice(room)) this.#news.delete(key);
    this.dropped += Math.max(0, reads.length - room);
    return [...changes, ...reads.slice(0, room)].slice(0, this.#statementsMax);
  }

  #compose(keys: readonly string[], nowMs: number, isComplete: boolean): CacheMessage {
    // A clock that stops or goes back must not make the later statement look like the earlier one.
    this.#lastStatedMs = Math.max(nowMs, this.#lastStatedMs + 1);
    const statements = keys.map((key): CacheStatement => ({ key, ...this.#entryOf(key, nowMs) }));
    return { node: this.node, epoch: this.epoch, statedMs: this.#lastStatedMs, isComplete, statements };
  }

  #entryOf(key: string, nowMs: number): Entry {
    return this.#held.get(key) ?? this.#others.get(key) ?? { chunks: [], hits: 0, readMs: nowMs };
  }

  #store(key: string, entry: Entry): void {
    this.#held.delete(key);
    this.#others.delete(key);
    (entry.chunks.length > 0 ? this.#held : this.#others).set(key, entry);
    if (this.#others.size > this.#othersMax) this.#others.delete(this.#others.keys().next().value!);
  }

  #announce(key: string, isChange: boolean, nowMs: number): void {
    this.#news.set(key, isChange || (this.#news.get(key) ?? false));
    this.dueMs = Math.min(this.dueMs, nowMs + this.#gatherMs);
  }
}
