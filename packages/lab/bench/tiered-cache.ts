/**
 * A cache in two tiers that keeps what was read last, as Cloudflare's Workers Caching and the Cache API do: lower tiers
 * near readers, one upper tier behind all of them. A read that meets a fetch under way waits for the rest of it.
 */

/** Where a read was answered. `joined`: another read had begun to fetch the object. */
export type Answer = "lower" | "upper" | "joined" | "origin";

interface TierOptions {
  /** In the unit of the weights. */
  readonly capacity: number;
  /** Seconds that an entry stays. Default: until it is replaced. */
  readonly ttlSeconds?: number;
}

interface Entry {
  readonly weight: number;
  /** When the fetch that brings it ends. */
  readonly readySeconds: number;
  readonly expiresSeconds: number;
}

/** The least recently used entries leave. */
class Tier {
  readonly #capacity: number;
  readonly #ttlSeconds: number;
  /** Iterates least recently used first. */
  readonly #entries = new Map<number, Entry>();
  #used = 0;

  constructor({ capacity, ttlSeconds = Infinity }: TierOptions) {
    this.#capacity = capacity;
    this.#ttlSeconds = ttlSeconds;
  }

  /** Returns in how many seconds the entry is there: 0 for now, undefined for one that is not kept. */
  find(object: number, seconds: number): number | undefined {
    const entry = this.#entries.get(object);
    if (!entry) return undefined;
    this.#remove(object, entry);
    if (seconds >= entry.expiresSeconds) return undefined;
    this.#add(object, entry);
    return Math.max(0, entry.readySeconds - seconds);
  }

  put(object: number, weight: number, readySeconds: number): void {
    if (weight > this.#capacity) return;
    const before = this.#entries.get(object);
    if (before) this.#remove(object, before);
    for (const [oldest, entry] of this.#entries) {
      if (this.#used + weight <= this.#capacity) break;
      this.#remove(oldest, entry);
    }
    this.#add(object, { weight, readySeconds, expiresSeconds: readySeconds + this.#ttlSeconds });
  }

  #add(object: number, entry: Entry): void {
    this.#entries.set(object, entry);
    this.#used += entry.weight;
  }

  #remove(object: number, entry: Entry): void {
    this.#entries.delete(object);
    this.#used -= entry.weight;
  }
}

/** One read. */
export interface TieredRead {
  /** Index of the lower tier. */
  readonly lower: number;
  readonly object: number;
  readonly weight: number;
  readonly seconds: number;
  /** Milliseconds from the reader to the lower tier. */
  readonly edgeMs: number;
  /** Milliseconds from the lower tier to the upper one, there and back. */
  readonly hopMs: number;
  /** Returns the milliseconds of a fetch behind the upper tier. Called for misses only. */
  readonly originMs: () => number;
}

/** Both tiers. Seconds never go back. */
export class TieredCache {
  readonly #lower: readonly Tier[];
  readonly #upper: Tier;

  /** @param upper a capacity of 0 leaves the tier out. */
  constructor(lowers: number, lower: TierOptions, upper: TierOptions) {
    this.#lower = Array.from({ length: lowers }, () => new Tier(lower));
    this.#upper = new Tier(upper);
  }

  /** Answers a read, and keeps the object in the tiers that it passed. */
  read({ lower, object, weight, seconds, edgeMs, hopMs, originMs }: TieredRead): { from: Answer; ms: number } {
    const tier = this.#lower[lower]!;
    const near = tier.find(object, seconds);
    if (near !== undefined) return { from: near > 0 ? "joined" : "lower", ms: edgeMs + 1000 * near };
    const far = this.#upper.find(object, seconds);
    const behindMs = far === undefined ? originMs() : 1000 * far;
    const fetchMs = hopMs + behindMs;
    if (far === undefined) this.#upper.put(object, weight, seconds + fetchMs / 1000);
    tier.put(object, weight, seconds + fetchMs / 1000);
    return { from: far === undefined ? "origin" : far > 0 ? "joined" : "upper", ms: edgeMs + fetchMs };
  }
}
