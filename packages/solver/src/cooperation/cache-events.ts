/**
 * The sending side of C2P (ICDCN 2015, sections 3.2 and 3.3): what happens in a node's cache, gathered for 200 ms, with several
 * events of one object in one statement (aggregation), and less of it when there is too much (filtering).
 *
 * Departures: which events are dropped is not printed: we drop reads, of the objects read least, and never what a cache
 * holds: that waits for the next message. Hits of objects that have left the cache are not forgotten at once.
 */

import { asChunks, asNumber } from "./cache-message.ts";
import type { CacheMessage, CacheStatement } from "./cache-message.ts";
import { decayedHits } from "./hit-decay.ts";

export interface CacheEventsSettings {
  /** Must grow with every start of the node that may have lost its memory. Default 0. */
  readonly epoch?: number;
  /** How long events are gathered. Default 200. */
  readonly gatherMs?: number;
  /** Statements in one message; what is beyond, the filter drops. Default 256. */
  readonly statementsMax?: number;
  /** Objects outside the cache whose hits are remembered. Default 10,000. */
  readonly othersMax?: number;
}

interface Entry {
  chunks: readonly number[];
  hits: number;
  readMs: number;
}

export class CacheEvents {
  readonly node: string;
  readonly epoch: number;
  /** Reads that the filter did not tell of. */
  dropped = 0;
  /** When a message is due; Infinity while there is nothing to tell. */
  dueMs = Infinity;
  readonly #gatherMs: number;
  readonly #statementsMax: number;
  readonly #othersMax: number;
  readonly #held = new Map<string, Entry>();
  /** Least recently read first. */
  readonly #others = new Map<string, Entry>();
  /** What the next message is to tell: true when other chunks are held, false for a mere read. */
  readonly #news = new Map<string, boolean>();
  #lastStatedMs = -Infinity;

  constructor(node: string, settings: CacheEventsSettings = {}) {
    this.node = node;
    this.epoch = asNumber(settings.epoch ?? 0, "epoch", { min: 0, isInteger: true });
    this.#gatherMs = asNumber(settings.gatherMs ?? 200, "gatherMs", { min: 0 });
    this.#statementsMax = asNumber(settings.statementsMax ?? 256, "statementsMax", { min: 1, isInteger: true });
    this.#othersMax = asNumber(settings.othersMax ?? 10_000, "othersMax", { min: 0, isInteger: true });
  }

  /** The object was read at this node, from its cache or not. */
  recordRead(key: string, nowMs: number): void {
    const now = asNumber(nowMs, "nowMs");
    const { chunks, hits, readMs } = this.#entryOf(key, now);
    this.#store(key, { chunks, hits: decayedHits(hits, readMs, now) + 1, readMs: Math.max(readMs, now) });
    this.#announce(key, false, now);
  }

  /** These chunks of the object (ascending) are held from now on; none when it has left the cache. */
  recordHeld(key: string, chunks: readonly number[], nowMs: number): void {
    const now = asNumber(nowMs, "nowMs");
    this.#store(key, { ...this.#entryOf(key, now), chunks: [...asChunks(chunks, "chunks")] });
    this.#announce(key, true, now);
  }

  /** The message that is due, or undefined before `dueMs`. */
  take(nowMs: number): CacheMessage | undefined {
    if (asNumber(nowMs, "nowMs") < this.dueMs) return undefined;
    const told = this.#filter();
    for (const key of told) this.#news.delete(key);
    this.dueMs = this.#news.size > 0 ? nowMs + this.#gatherMs : Infinity;
    return this.#compose(told, nowMs, false);
  }

  /** All that is held, at once: for a peer that has just come, and now and then against messages that were lost. */
  digest(nowMs: number): CacheMessage {
    return this.#compose([...this.#held.keys()], asNumber(nowMs, "nowMs"), true);
  }

  /** What the next message tells; of reads beyond `statementsMax` it forgets to tell, those of least hits first. */
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
    // A clock that stood still or went back must not make the later statement look like the earlier one.
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
