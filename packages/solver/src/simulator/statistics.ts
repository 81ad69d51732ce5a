/** Sums up the reads of one system at one PoP, or of several together. */

import type { ReadOutcome } from "./world.ts";

export interface ReadStatistics {
  readonly reads: number;
  /** Reads that could not be completed; they are in no other figure. */
  readonly failedReads: number;
  readonly meanMs: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
  /** Reads that found at least one chunk in their own PoP's cache. */
  readonly hitRatio: number;
  /** Reads that found all k there. */
  readonly fullHitRatio: number;
  /** Chunks found there, of all chunks needed. */
  readonly chunkHitRatio: number;
  /** Chunks found in a peer's cache, of all chunks needed. */
  readonly peerChunkRatio: number;
  /** Chunks asked for per read, from all sources. */
  readonly requestsPerRead: number;
  /** Reads that had to decode, because they used anything else than data chunks. */
  readonly decodedRatio: number;
}

export class ReadLog {
  #ms = new Float32Array(1024);
  #count = 0;
  #failed = 0;
  #sum = 0;
  #hits = 0;
  #fullHits = 0;
  #ownChunks = 0;
  #peerChunks = 0;
  #requests = 0;
  #decoded = 0;

  add({ ms, fromOwn: own, fromPeers: peers, requests, isDecoded }: ReadOutcome, k: number): void {
    if (Number.isNaN(ms)) {
      this.#failed++;
      return;
    }
    if (this.#count === this.#ms.length) {
      const grown = new Float32Array(2 * this.#count);
      grown.set(this.#ms);
      this.#ms = grown;
    }
    this.#ms[this.#count++] = ms;
    this.#sum += ms;
    this.#requests += requests;
    if (isDecoded) this.#decoded++;
    if (own > 0) this.#hits++;
    if (own >= k) this.#fullHits++;
    this.#ownChunks += own / k;
    this.#peerChunks += peers / k;
  }

  /** Appends another log's reads. */
  addAll(other: ReadLog): void {
    const joined = new Float32Array(this.#count + other.#count);
    joined.set(this.#ms.subarray(0, this.#count));
    joined.set(other.#ms.subarray(0, other.#count), this.#count);
    this.#ms = joined;
    this.#count += other.#count;
    this.#failed += other.#failed;
    this.#sum += other.#sum;
    this.#hits += other.#hits;
    this.#fullHits += other.#fullHits;
    this.#ownChunks += other.#ownChunks;
    this.#peerChunks += other.#peerChunks;
    this.#requests += other.#requests;
    this.#decoded += other.#decoded;
  }

  summarize(): ReadStatistics {
    const sorted = this.#ms.slice(0, this.#count).toSorted();
    const per = (total: number): number => (this.#count === 0 ? 0 : total / this.#count);
    return {
      reads: this.#count,
      failedReads: this.#failed,
      meanMs: per(this.#sum),
      p50Ms: quantile(sorted, 0.5),
      p95Ms: quantile(sorted, 0.95),
      p99Ms: quantile(sorted, 0.99),
      hitRatio: per(this.#hits),
      fullHitRatio: per(this.#fullHits),
      chunkHitRatio: per(this.#ownChunks),
      peerChunkRatio: per(this.#peerChunks),
      requestsPerRead: per(this.#requests),
      decodedRatio: per(this.#decoded),
    };
  }

  /** Latencies at so many equally spaced quantiles from 0 to 1, for a distribution plot. */
  quantiles(points: number): number[] {
    const sorted = this.#ms.slice(0, this.#count).toSorted();
    return Array.from({ length: points }, (_, i) => quantile(sorted, i / (points - 1)));
  }
}

/** The smallest number that at least the share q of all is not above (nearest rank). */
function quantile(sorted: Float32Array, q: number): number {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))]!;
}
