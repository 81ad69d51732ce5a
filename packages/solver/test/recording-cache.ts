/** A cache for tests of policies: it records their decisions, and throws when they overfill it. */
import type { PolicyCache } from "../src/policy/policy.ts";
import { seededRandom } from "../src/random.ts";

export class RecordingCache implements PolicyCache {
  readonly objects: number;
  readonly capacity: number;
  readonly chunkWeight: Float64Array;
  readonly decisions: (readonly [object: number, d: number])[] = [];
  /** Grows with every measurement of latencies, which `savedMs` depends on. */
  latencies = 0;
  readonly #seed: number;
  readonly #k: Int32Array;
  readonly #count: Int32Array;
  readonly #owner: Int32Array;
  /** Milliseconds saved by 0..k chunks, computed when first asked: policies ask very often. */
  readonly #saved: ({ readonly label: number; readonly latencies: number; readonly ms: number[] } | undefined)[] = [];

  /** Objects of 1 to 4 chunks and weights from 1 to 5 each, drawn from the seed; a third of all chunks fit. */
  constructor(objects: number, seed: number) {
    this.#seed = seed;
    this.objects = objects;
    this.#k = new Int32Array(objects);
    this.#count = new Int32Array(objects);
    this.#owner = new Int32Array(objects);
    this.chunkWeight = new Float64Array(objects);
    for (let o = 0; o < objects; o++) this.#settle(o);
    this.capacity = Math.ceil(this.#k.reduce((sum, k, o) => sum + k * this.chunkWeight[o]!, 0) / 3);
  }

  /** Returns a cache with the same contents and no recorded decisions. */
  copy(): RecordingCache {
    const copy = new RecordingCache(this.objects, this.#seed);
    copy.#k.set(this.#k);
    copy.#count.set(this.#count);
    copy.#owner.set(this.#owner);
    copy.chunkWeight.set(this.chunkWeight);
    copy.latencies = this.latencies;
    return copy;
  }

  /** Gives the slot to another object, of which the cache keeps nothing. */
  handOver(object: number): void {
    this.#count[object] = 0;
    this.#owner[object]! += 1;
    this.#settle(object);
  }

  get used(): number {
    return this.#count.reduce((sum, d, o) => sum + d * this.chunkWeight[o]!, 0);
  }

  kOf(object: number): number {
    return this.#k[object]!;
  }

  countOf(object: number): number {
    return this.#count[object]!;
  }

  savedMs(object: number, d: number): number {
    const label = 1000 * this.#owner[object]! + object;
    const known = this.#saved[object];
    if (known?.label === label && known.latencies === this.latencies) return known.ms[d]!;
    const random = seededRandom(this.#seed).fork(label).fork(this.latencies);
    let sum = 0;
    const ms = [0, ...Array.from({ length: this.#k[object]! }, () => (sum += Math.floor(100 * random.next() ** 2)))];
    this.#saved[object] = { label, latencies: this.latencies, ms };
    return ms[d]!;
  }

  keep(object: number, d: number): void {
    if (!Number.isInteger(d) || d < 0 || d > this.#k[object]!)
      throw new Error(`${d} chunks of ${this.#k[object]} kept`);
    if (d !== this.#count[object]) this.decisions.push([object, d]);
    this.#count[object] = d;
    if (this.used > this.capacity) throw new Error(`the cache holds ${this.used}, above its capacity ${this.capacity}`);
  }

  #settle(object: number): void {
    const random = seededRandom(this.#seed).fork(7000 + 1000 * this.#owner[object]! + object);
    this.#k[object] = 1 + random.integer(4);
    this.chunkWeight[object] = 1 + random.integer(5);
  }
}
