/**
 * How often keys were requested recently, in fixed memory: the frequency sketch of TinyLFU (Einziger, Friedman, Manes:
 * TinyLFU, ACM Transactions on Storage 2017, sections 3.2 and 3.3). Pure.
 *
 * A count-min sketch with conservative update. All counters are halved after every `10 x keys` requests, so that old
 * popularity fades. Departures: counters have 8 bits instead of 4, for simplicity and to distinguish hot keys; there is
 * no doorkeeper.
 */

const ROWS = 4;
const COUNTERS_PER_KEY = 4;
const REQUESTS_PER_KEY = 10;
const COUNTER_MAX = 255;

/** Estimates of recent requests by key. */
export class FrequencySketch {
  readonly #counters: Uint8Array;
  readonly #mask: number;
  readonly #sampleRequests: number;
  readonly #slots = new Int32Array(ROWS);
  #requests = 0;

  /** @param keys how many keys it distinguishes well; each takes 16 to 32 bytes of memory. */
  constructor(keys: number) {
    const width = 2 ** Math.ceil(Math.log2(COUNTERS_PER_KEY * Math.max(1, keys)));
    this.#counters = new Uint8Array(ROWS * width);
    this.#mask = width - 1;
    this.#sampleRequests = REQUESTS_PER_KEY * Math.max(1, keys);
  }

  get bytes(): number {
    return this.#counters.length;
  }

  add(key: string, requests = 1): void {
    const least = this.estimate(key);
    const next = Math.min(COUNTER_MAX, least + requests);
    for (const slot of this.#slots) if (this.#counters[slot]! < next) this.#counters[slot] = next;
    this.#requests += requests;
    if (this.#requests >= this.#sampleRequests) this.#age();
  }

  /** Returns recent requests, 0 to 255: seldom fewer than since the last halving, sometimes more. */
  estimate(key: string): number {
    const hash = hashOf(key);
    // Two hashes give any number of them (Kirsch, Mitzenmacher 2006).
    const step = mix(hash ^ 0x9e3779b9) | 1;
    let least = COUNTER_MAX;
    for (let row = 0; row < ROWS; row++) {
      const slot = row * (this.#mask + 1) + ((hash + Math.imul(row, step)) & this.#mask);
      this.#slots[row] = slot;
      least = Math.min(least, this.#counters[slot]!);
    }
    return least;
  }

  #age(): void {
    const counters = this.#counters;
    for (let i = 0; i < counters.length; i++) counters[i]! >>>= 1;
    this.#requests = Math.floor(this.#requests / 2);
  }
}

/** Mixed FNV-1a: the plain hash chooses shards, so keys of one shard would share counters. */
function hashOf(key: string): number {
  return mix(fnv1a(key));
}

/** Returns the 32-bit FNV-1a hash of the UTF-16 code units of `key`. */
export function fnv1a(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/** The finaliser of MurmurHash3. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
