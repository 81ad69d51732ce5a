/** Summarises the reads of one system at one PoP, or at several together. */
import { grown } from "../grown.ts";
import type { ReadOutcome } from "./world.ts";

/** Statistics of reads. Times are in milliseconds; ratios are from 0 to 1, of completed reads. */
export interface ReadStatistics {
  readonly reads: number;
  /** Reads that could not be completed; no other figure includes them. */
  readonly failedReads: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** Reads that found at least one chunk in their own PoP's cache. */
  readonly hitRatio: number;
  /** Reads that found all k chunks there. */
  readonly fullHitRatio: number;
  /** Share of the needed chunks found there. */
  readonly chunkHitRatio: number;
  /** Share of the needed chunks found in a peer's cache. */
  readonly peerChunkRatio: number;
  /** Chunks requested per read, from all sources. */
  readonly requestsPerRead: number;
  /** Reads that had to decode, because they used other chunks than data chunks. */
  readonly decodedRatio: number;
}

/** So many full hits are remembered, to add more like them. */
const FULL_HITS_KEPT = 1024;

/** Collects reads. */
export class ReadLog {
  #ms = new Float32Array(1024);
  #count = 0;
  readonly #fullHitMs: number[] = [];
  readonly #sums = {
    ms: 0,
    failed: 0,
    hits: 0,
    fullHits: 0,
    fullHitRequests: 0,
    ownChunks: 0,
    peerChunks: 0,
    requests: 0,
    decoded: 0,
  };

  /** Adds one read; `k` is the number of chunks it needed. */
  add({ ms, fromOwn: own, fromPeers: peers, requests, isDecoded }: ReadOutcome, k: number): void {
    if (Number.isNaN(ms)) {
      this.#sums.failed++;
      return;
    }
    if (this.#count === this.#ms.length) this.#ms = grown(this.#ms, 2 * this.#count);
    this.#ms[this.#count++] = ms;
    this.#sums.ms += ms;
    this.#sums.requests += requests;
    if (isDecoded) this.#sums.decoded++;
    if (own > 0) this.#sums.hits++;
    if (own >= k) {
      this.#fullHitMs[this.#sums.fullHits++ % FULL_HITS_KEPT] = ms;
      this.#sums.fullHitRequests += requests;
    }
    this.#sums.ownChunks += own / k;
    this.#sums.peerChunks += peers / k;
  }

  get count(): number {
    return this.#count;
  }

  /**
   * Corrects a sample of objects for the luck of its choice: adds so many full hits, or takes away as many when
   * negative. A sample that has too few reads lacks hot objects, whose reads are hits (SHARDS-adj; Waldspurger et al.,
   * FAST 2015, section 4.1).
   */
  correct(difference: number): void {
    if (this.#sums.fullHits === 0) return;
    const change = Math.max(-this.#sums.fullHits, Math.round(difference));
    const kept = this.#ms.subarray(0, this.#count).toSorted();
    const count = this.#count + change;
    // Full hits are the fastest reads.
    const dropped = kept.subarray(0, Math.max(0, -change));
    this.#ms = new Float32Array(count);
    this.#ms.set(kept.subarray(dropped.length));
    for (let i = this.#count; i < count; i++) this.#ms[i] = this.#fullHitMs[i % this.#fullHitMs.length]!;
    const sumOf = (values: Float32Array): number => values.reduce((sum, ms) => sum + ms, 0);
    this.#sums.ms += sumOf(this.#ms.subarray(Math.min(this.#count, count))) - sumOf(dropped);
    this.#sums.requests += change * (this.#sums.fullHitRequests / this.#sums.fullHits);
    this.#count = count;
    this.#sums.hits += change;
    this.#sums.fullHits += change;
    this.#sums.ownChunks += change;
  }

  addAll(other: ReadLog): void {
    const joined = new Float32Array(this.#count + other.#count);
    joined.set(this.#ms.subarray(0, this.#count));
    joined.set(other.#ms.subarray(0, other.#count), this.#count);
    this.#ms = joined;
    this.#count += other.#count;
    const sums = this.#sums;
    for (const name of Object.keys(sums) as (keyof typeof sums)[]) sums[name] += other.#sums[name];
  }

  /** Returns the statistics of all reads so far; zeros when there are none. */
  summarize(): ReadStatistics {
    const sorted = this.#ms.slice(0, this.#count).toSorted();
    const per = (total: number): number => (this.#count === 0 ? 0 : total / this.#count);
    return {
      reads: this.#count,
      failedReads: this.#sums.failed,
      meanMs: per(this.#sums.ms),
      p50Ms: quantile(sorted, 0.5),
      p95Ms: quantile(sorted, 0.95),
      p99Ms: quantile(sorted, 0.99),
      hitRatio: per(this.#sums.hits),
      fullHitRatio: per(this.#sums.fullHits),
      chunkHitRatio: per(this.#sums.ownChunks),
      peerChunkRatio: per(this.#sums.peerChunks),
      requestsPerRead: per(this.#sums.requests),
      decodedRatio: per(this.#sums.decoded),
    };
  }
}

/** The smallest number that is at least as large as the share q of all numbers (nearest rank); 0 without numbers. */
export function quantile(sorted: Float32Array | readonly number[], q: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))]!;
}
