/** The sources of a read outside its own cache, nearest first: regions and peers. */
import type { Group } from "./scenario/catalogue.ts";
import type { Conditions } from "./scenario/conditions.ts";
import { bitCount } from "./numbers.ts";

interface CandidateOptions {
  readonly k: number;
  /** k + m. */
  readonly chunks: number;
  readonly groups: readonly Group[];
  readonly conditions: Conditions;
  /** Milliseconds per PoP and region. */
  readonly regionMs: readonly Float64Array[];
  /** Milliseconds per PoP and PoP; Infinity where there is no connection. */
  readonly peerMs: readonly Float64Array[];
  /** Whether reads ask peers. */
  readonly joint: boolean;
  /** Whether a read asks for parity only in place of unavailable data. */
  readonly dataOnly: boolean;
}

/** Lists that each call of `list` refills, because a simulation makes millions of reads. */
export class Candidates {
  /** Expected milliseconds, ascending. */
  readonly estimate: Float64Array;
  /** The chunk, by which its region is known, or -1 - the peer. */
  readonly source: Int32Array;
  /** Index of the chunk; -1 for a functional chunk. */
  readonly chunk: Int32Array;
  readonly #options: CandidateOptions;
  /** Per PoP and group. */
  #order: (Int32Array | undefined)[][];

  constructor(options: CandidateOptions) {
    this.#options = options;
    const most = 2 * options.chunks + options.k * options.peerMs.length + 1;
    this.estimate = new Float64Array(most);
    this.source = new Int32Array(most);
    this.chunk = new Int32Array(most);
    this.#order = options.peerMs.map(() => []);
  }

  /** Fills the lists with every source outside the own cache, nearest first; returns how many there are. */
  list(pop: number, group: number, held: ArrayLike<number>): number {
    const peerMs = this.#options.peerMs[pop]!;
    const { cacheTransferMs } = this.#options.groups[group]!;
    const toPeerMs = (q: number): number => peerMs[q]! + cacheTransferMs[pop]!;
    const order = this.orderOf(pop, group);
    const mask = held[pop]!;
    let count = 0;
    let covered = mask;
    let parity = this.#options.dataOnly ? this.#parityNeeded(order, mask) : Infinity;
    for (let s = 0; s < order.length; s++) {
      const c = order[s]!;
      if (mask & (1 << c) || (c >= this.#options.k && parity-- <= 0)) continue;
      let ms = this.#chunkMs(pop, group, c);
      let from = c;
      covered |= 1 << c;
      if (this.#options.joint) {
        for (let q = 0; q < peerMs.length; q++) {
          if (q === pop || !(held[q]! & (1 << c)) || toPeerMs(q) >= ms) continue;
          ms = toPeerMs(q);
          from = -1 - q;
        }
      }
      this.#insert(count++, ms, from, c);
    }
    if (!this.#options.joint) return count;
    for (let q = 0; q < peerMs.length; q++) {
      if (q === pop || !Number.isFinite(peerMs[q]!)) continue;
      // A peer may hold a chunk whose region is down.
      for (let c = 0; c < this.#options.chunks; c++) {
        if (covered & (1 << c) || !(held[q]! & (1 << c))) continue;
        covered |= 1 << c;
        this.#insert(count++, toPeerMs(q), -1 - q, c);
      }
      // PoPs keep different functional chunks.
      for (let row = bitCount(held[q]! >> this.#options.chunks); row > 0; row--)
        this.#insert(count++, toPeerMs(q), -1 - q, -1);
    }
    return count;
  }

  #chunkMs(pop: number, group: number, chunk: number): number {
    const { regionMs, conditions, groups } = this.#options;
    const { region, transferMs } = groups[group]!;
    return regionMs[pop]![region[chunk]!]! * conditions.factor[region[chunk]!]! + transferMs[pop]!;
  }

  /** Expected milliseconds of the chunk that is `rank` others farther than the nearest; Infinity where none is. */
  msOf(pop: number, group: number, rank: number): number {
    const chunk = this.orderOf(pop, group)[rank];
    return chunk === undefined ? Infinity : this.#chunkMs(pop, group, chunk);
  }

  /** Parity chunks that a read needs beside the data chunks of `order` and those in the mask. */
  #parityNeeded(order: Int32Array, mask: number): number {
    const { k } = this.#options;
    let had = mask;
    for (let s = 0; s < order.length; s++) if (order[s]! < k) had |= 1 << order[s]!;
    return k - bitCount(had);
  }

  #insert(at: number, ms: number, from: number, index: number): void {
    const { estimate, source, chunk } = this;
    let s = at;
    for (; s > 0 && estimate[s - 1]! > ms; s--) {
      estimate[s] = estimate[s - 1]!;
      source[s] = source[s - 1]!;
      chunk[s] = chunk[s - 1]!;
    }
    estimate[s] = ms;
    source[s] = from;
    chunk[s] = index;
  }

  /** Chunks available from regions under the present conditions, nearest first. */
  orderOf(pop: number, group: number): Int32Array {
    return (this.#order[pop]![group] ??= this.#sortChunks(pop, group));
  }

  #sortChunks(pop: number, group: number): Int32Array {
    const { region } = this.#options.groups[group]!;
    const ms = (c: number): number =>
      this.#options.regionMs[pop]![region[c]!]! * this.#options.conditions.factor[region[c]!]!;
    const up = Array.from(region.keys())
      .filter((c) => this.#options.conditions.down[region[c]!] === 0)
      .toSorted((a, b) => ms(a) - ms(b) || a - b);
    if (!this.#options.dataOnly) return Int32Array.from(up);
    const data = up.filter((c) => c < this.#options.k);
    const parity = up.filter((c) => c >= this.#options.k).slice(0, this.#options.k - data.length);
    return Int32Array.from([...data, ...parity].toSorted((a, b) => ms(a) - ms(b) || a - b));
  }

  /** Drops all orders: to be called when conditions have changed. */
  forget(): void {
    this.#order = this.#order.map(() => []);
  }
}
