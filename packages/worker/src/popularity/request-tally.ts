/**
 * Requests by key in bounded memory. Counts are exact while there is room. Beyond that, a new key replaces another one
 * only if it was requested more often recently (TinyLFU's admission). Pure.
 */
import { FrequencySketch } from "./frequency-sketch.ts";

/** Different keys that an isolate counts between two flushes: at most 8 MB of the longest keys. */
export const COUNTED_KEYS_MAX = 4_096;
/** Keys that each shard of the request monitor keeps: at most 20 MB of the longest keys. */
export const SHARD_KEYS_MAX = 16_384;

/** Requests for a key, and who made them: no more clients than a fill needs. */
export type CountedKey = readonly [key: string, requests: number, clients?: readonly string[]];

/** Counts by key. */
export class RequestTally {
  readonly #keysMax: number;
  readonly #sketch: FrequencySketch;
  #counts = new Map<string, number>();
  #keys: string[] = [];
  /** The key that competes next with a new one: they take turns. */
  #hand = 0;
  #dropped = 0;

  constructor(keysMax: number) {
    this.#keysMax = keysMax;
    this.#sketch = new FrequencySketch(keysMax);
  }

  get size(): number {
    return this.#counts.size;
  }

  get counts(): ReadonlyMap<string, number> {
    return this.#counts;
  }

  /** Requests that were not counted for lack of room, since the beginning. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Bytes of the sketch; the counts hold `size` keys beside it. */
  get sketchBytes(): number {
    return this.#sketch.bytes;
  }

  add(key: string, requests = 1): void {
    this.#sketch.add(key, requests);
    this.#put(key, requests);
  }

  /** Puts back drained counts that were not handed on. The sketch has counted them already. */
  restore(entries: Iterable<readonly [key: string, requests: number]>): void {
    for (const [key, requests] of entries) this.#put(key, requests);
  }

  /** Returns the counts since the last call, and restarts. The sketch stays. */
  drain(): Map<string, number> {
    const counts = this.#counts;
    this.#counts = new Map();
    this.#keys = [];
    this.#hand = 0;
    return counts;
  }

  #put(key: string, requests: number): void {
    const known = this.#counts.get(key);
    if (known === undefined && this.#keys.length >= this.#keysMax) return this.#contest(key, requests);
    if (known === undefined) this.#keys.push(key);
    this.#counts.set(key, (known ?? 0) + requests);
  }

  #contest(key: string, requests: number): void {
    const victim = this.#keys[this.#hand]!;
    const count = this.#counts.get(victim)!;
    if (admits(this.#sketch, key, victim, count)) {
      this.#counts.delete(victim);
      this.#counts.set(key, requests);
      this.#keys[this.#hand] = key;
      this.#dropped += count;
    } else this.#dropped += requests;
    this.#hand = (this.#hand + 1) % this.#keysMax;
  }
}

/** Returns whether `key` was requested more often recently than `victim`, which has at least `known` requests. */
export function admits(sketch: FrequencySketch, key: string, victim: string, known: number): boolean {
  return sketch.estimate(key) > Math.max(known, sketch.estimate(victim));
}
