/**
 * The chunk cache: Workers KV, in front of it the Cache API, and in front of that this isolate's memory. One value
 * holds all cached chunks of one (version, stripe) as the frames in which a bundle carries them.
 *
 * Reading never fails: whatever KV does, the answer is some of the requested chunks, or none, in bounded time.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";
import { encodeFrame, parseFrames, type Frame } from "@agarose/core/format";
import { ByteLru } from "@agarose/core/read";
import type { Connections } from "../runtime/connections.ts";
import type { ValueStore } from "../runtime/storage-ports.ts";
import type { FrontCache } from "./front-cache.ts";
import { PutsInFlight } from "./puts-in-flight.ts";

/** The parts of an invocation that the cache needs. */
export interface CacheContext {
  readonly kv: ValueStore;
  readonly connections: Connections;
  readonly waitUntil: (promise: Promise<unknown>) => void;
  /** Spends operations of the invocation, or returns false where fewer are left. */
  readonly spend: (operations: number) => boolean;
  /** Called for a version whose promised chunks KV lacks or has with wrong bytes. */
  readonly onSuspect: (version: string) => void;
  /** Called for each read that was answered, with how long it took, and whether KV had to be asked. */
  readonly onTimed: (ms: number, isFirst: boolean) => void;
}

/** A cached value and its chunk frames, which are views of it. */
export interface CachedStripe {
  readonly value: Uint8Array;
  readonly bytes: number;
  readonly frames: readonly Frame[];
}

/** A KV read that takes longer counts as failed. */
export const KV_DEADLINE_MS = 1_000;
/** After a failure of KV, reads skip it for this long, so that few reads wait for an outage. */
const PAUSE_MS = 5_000;
/** Cache API, KV, and a put into the Cache API. */
const OPERATIONS_PER_READ = 3;
/** The Cache API answers for so long after KV has. */
export const FRONT_TTL_SECONDS = 3_600;
const NOTHING: CachedStripe = { value: new Uint8Array(0), bytes: 0, frames: [] };

/** The chunk cache as one isolate sees it. */
export class ChunkCache {
  readonly #frontCache: FrontCache;
  readonly #clock: Clock;
  readonly #counters: ChunkCacheCounters = { hits: 0, misses: 0, malformed: 0, kvFailures: 0 };
  readonly #memory: ByteLru<CachedStripe>;
  /** The data shards of values in memory, where a read has verified them. */
  readonly #verified = new WeakMap<CachedStripe, readonly Uint8Array[]>();
  /** A delete must wait for them. */
  readonly #putsInFront: PutsInFlight;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  /** @param memoryBytes for hot values. */
  constructor(frontCache: FrontCache, clock: Clock, memoryBytes: number) {
    this.#memory = new ByteLru(memoryBytes);
    this.#frontCache = frontCache;
    this.#clock = clock;
    this.#putsInFront = new PutsInFlight(clock);
  }

  get counters(): Readonly<ChunkCacheCounters> {
    return this.#counters;
  }

  /** Resolves to the cached frames of `chunks` in a stripe, unverified and possibly none. Never rejects. */
  async read(version: string, stripe: number, chunks: readonly number[], context: CacheContext): Promise<CachedStripe> {
    const frontName = nameWith(version, stripe, chunks);
    const remembered = this.#memory.get(frontName);
    if (remembered) {
      context.onTimed(0, false);
      return this.#count(remembered, chunks);
    }
    // A refusal of the platform would look like an outage of KV, so the budget refuses first: that is a miss.
    if (!context.spend(OPERATIONS_PER_READ)) return this.#count(NOTHING, chunks);
    const startMs = this.#clock.now();
    const inFront = await context.connections.run(() => this.#frontCache.get(frontName));
    const front = inFront ? this.#parse(inFront, stripe) : NOTHING;
    if (holdsAll(front, chunks)) {
      this.#memory.set(frontName, front);
      context.onTimed(this.#clock.now() - startMs, false);
      return this.#count(front, chunks);
    }
    const answer = await this.#readKv(valueName(version, stripe), context);
    const stored = answer?.value ? this.#parse(new Uint8Array(answer.value), stripe) : NOTHING;
    if (holdsAll(stored, chunks)) {
      this.#memory.set(frontName, stored);
      context.onTimed(this.#clock.now() - startMs, true);
      context.waitUntil(this.#putInFront(frontName, stored.value));
    } else if (answer) {
      context.onSuspect(version);
    }
    return this.#count(stored, chunks);
  }

  /**
   * Returns the data shards of a stripe, if memory holds them and a read has verified them there. Nothing writes to a
   * value in memory, so they need no second check.
   */
  verified(version: string, stripe: number, chunks: readonly number[]): readonly Uint8Array[] | undefined {
    const value = this.#memory.get(nameWith(version, stripe, chunks));
    const data = value && this.#verified.get(value);
    if (data) this.#counters.hits++;
    return data;
  }

  /** Notes that a read has verified `data`, the data shards of a stripe. Those that lie elsewhere are not kept. */
  noteVerified(version: string, stripe: number, chunks: readonly number[], data: readonly Uint8Array[]): void {
    const value = this.#memory.get(nameWith(version, stripe, chunks));
    if (value && data.every(({ buffer }) => buffer === value.value.buffer)) this.#verified.set(value, data);
  }

  /** Resolves to the frames of a stripe straight from KV, for the cache manager. Rejects when KV fails. */
  async load(version: string, stripe: number, { kv, connections }: CacheContext): Promise<readonly Frame[]> {
    const stored = await connections.run(() => kv.get(valueName(version, stripe), "arrayBuffer"));
    return stored ? this.#parse(new Uint8Array(stored), stripe).frames : [];
  }

  /** Stores chunks of a stripe that the caller has verified. Rejects when KV fails. */
  async write(
    version: string,
    stripe: number,
    chunks: ReadonlyMap<number, Uint8Array>,
    { kv, connections }: CacheContext,
  ): Promise<void> {
    const ordered = [...chunks].toSorted(([a], [b]) => a - b);
    const value = new Blob(ordered.map(([chunk, bytes]) => encodeFrame("chunk", stripe, chunk, bytes)));
    await connections.run(async () => kv.put(valueName(version, stripe), await value.arrayBuffer()));
  }

  /** Removes a stripe. Rejects when KV fails. */
  async evict(version: string, stripe: number, { kv, connections }: CacheContext): Promise<void> {
    await connections.run(() => kv.delete(valueName(version, stripe)));
  }

  /** Drops a version from this isolate's memory. */
  forget(version: string): void {
    for (const name of this.#memory.names()) if (name.startsWith(`chunks:${version}:`)) this.#memory.delete(name);
  }

  /** Drops a value that had wrong bytes, and marks its version for a check. */
  async reportCorrupt(
    version: string,
    stripe: number,
    chunks: readonly number[],
    { onSuspect }: CacheContext,
  ): Promise<void> {
    onSuspect(version);
    const name = nameWith(version, stripe, chunks);
    this.#memory.delete(name);
    const put = this.#putsInFront.get(name);
    if (put) await orUndefined(put, KV_DEADLINE_MS, this.#clock);
    await this.#frontCache.delete(name);
  }

  async #putInFront(name: string, bytes: Uint8Array): Promise<void> {
    if (!this.#putsInFront.hasRoom(bytes.length)) return;
    await this.#putsInFront.add(name, bytes.length, this.#frontCache.put(name, bytes, FRONT_TTL_SECONDS));
  }

  /** Resolves to KV's answer, or to undefined when KV fails, hangs or did so within the last five seconds. */
  async #readKv(name: string, { kv, connections }: CacheContext): Promise<{ value: ArrayBuffer | null } | undefined> {
    const get = async (): Promise<{ value: ArrayBuffer | null }> => ({ value: await kv.get(name, "arrayBuffer") });
    const ask = async (): Promise<{ value: ArrayBuffer | null } | undefined> => {
      if (this.#clock.now() < this.#pausedUntilMs) return undefined;
      const answer = await orUndefined(get(), KV_DEADLINE_MS, this.#clock);
      if (!answer) {
        this.#counters.kvFailures++;
        this.#pausedUntilMs = this.#clock.now() + PAUSE_MS;
      }
      return answer;
    };
    // A KV that hangs must not keep connections, which the buckets need, and waiting for one must not take longer.
    return orUndefined(connections.run(ask), KV_DEADLINE_MS, this.#clock);
  }

  /** Returns the frames of a value. A malformed value counts as empty: truncated, or of another stripe. */
  #parse(bytes: Uint8Array, stripe: number): CachedStripe {
    try {
      const frames = parseFrames(bytes);
      if (frames.length > 0 && frames.every((frame) => frame.type === "chunk" && frame.stripe === stripe)) {
        return { value: bytes, bytes: bytes.length, frames };
      }
    } catch {
      // Only the counter distinguishes it from a miss: the chunks come from elsewhere.
    }
    this.#counters.malformed++;
    return NOTHING;
  }

  #count(value: CachedStripe, chunks: readonly number[]): CachedStripe {
    if (holdsAll(value, chunks)) this.#counters.hits++;
    else this.#counters.misses++;
    return value;
  }
}

/** Hits and misses of reads, in stripes. */
interface ChunkCacheCounters {
  /** Stripes found with every chunk that was promised. */
  hits: number;
  misses: number;
  malformed: number;
  /** Reads that KV refused or did not answer in time. */
  kvFailures: number;
}

function holdsAll({ frames }: CachedStripe, chunks: readonly number[]): boolean {
  return chunks.every((chunk) => frames.some((frame) => frame.chunk === chunk));
}

/**
 * Returns the name in memory and in the Cache API. With the chunks, a value from before the set grew is never found.
 */
export function nameWith(version: string, stripe: number, chunks: readonly number[]): string {
  return `${valueName(version, stripe)}:${chunks.join(",")}`;
}

function valueName(version: string, stripe: number): string {
  return `chunks:${version}:${stripe}`;
}
