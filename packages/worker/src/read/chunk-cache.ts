/**
 * The chunk cache: Workers KV, in front of it the Cache API, and in front of that this isolate's memory. One value holds all cached chunks of one (version, stripe), as
 * the frames in which a bundle carries them.
 *
 * Reading never fails: whatever KV does, the answer is some of the chunks asked for, or none, in bounded time.
 */
import { ByteLru, encodeFrame, parseFrames, type Clock, type Frame } from "@agarose/core";
import type { Connections } from "../platform/connections.ts";
import { orUndefined } from "../platform/async.ts";
import type { FrontCache } from "./front-cache.ts";

/** What one use of the cache needs of the invocation. */
export interface CacheContext {
  readonly kv: KVNamespace;
  readonly connections: Connections;
  readonly waitUntil: (promise: Promise<unknown>) => void;
  /** Spends so many operations of the invocation, or returns false where fewer are left. */
  readonly spend: (operations: number) => boolean;
  /** Told of a version of which KV does not have what was promised, or has it wrong. */
  readonly onSuspect: (version: string) => void;
}

/** A cached value: its chunk frames, and the bytes they are views of. */
export interface CachedStripe {
  readonly value: Uint8Array;
  readonly bytes: number;
  readonly frames: readonly Frame[];
}

export const KV_DEADLINE_MS = 1_000;
/** After KV failed or hung, reads do without it for this long, so that one outage is paid for once. */
const PAUSE_MS = 5_000;
/** In front, KV, and into the front. */
const OPERATIONS_PER_READ = 3;
const FRONT_TTL_SECONDS = 3_600;
const NOTHING: CachedStripe = { value: new Uint8Array(0), bytes: 0, frames: [] };
/** Whatever is read again and again: an isolate has 128 MB, which reads share. */
const MEMORY_BYTES_MAX = 16 * 1024 * 1024;
/** On their way into the front at a time; what is more is put there by a later read. */
const PUTS_BYTES_MAX = 16 * 1024 * 1024;

export class ChunkCache {
  readonly #frontCache: FrontCache;
  readonly #clock: Clock;
  readonly #counters: ChunkCacheCounters = { hits: 0, misses: 0, malformed: 0, kvFailures: 0 };
  readonly #memory = new ByteLru<CachedStripe>(MEMORY_BYTES_MAX);
  /** Under way: what is to be deleted must have arrived. */
  readonly #putsInFront = new Map<string, Promise<void>>();
  #bytesOnTheWay = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(frontCache: FrontCache, clock: Clock) {
    this.#frontCache = frontCache;
    this.#clock = clock;
  }

  get counters(): Readonly<ChunkCacheCounters> {
    return this.#counters;
  }

  /** The frames of `chunks` in a stripe that are there, which may be none. They are not verified. */
  async read(version: string, stripe: number, chunks: readonly number[], context: CacheContext): Promise<CachedStripe> {
    // The set of chunks is part of the name in front, so a value from before the set grew is not found any more.
    const frontName = `${valueName(version, stripe)}:${chunks.join(",")}`;
    const remembered = this.#memory.get(frontName);
    if (remembered) return this.#count(remembered, chunks);
    // Refused by us, what is lacking is a miss; refused by the platform, it would pass for an outage of KV.
    if (!context.spend(OPERATIONS_PER_READ)) return this.#count(NOTHING, chunks);
    const inFront = await context.connections.run(() => this.#frontCache.get(frontName));
    const front = inFront ? this.#parse(inFront, stripe) : NOTHING;
    if (holdsAll(front, chunks)) {
      this.#memory.set(frontName, front);
      return this.#count(front, chunks);
    }
    const answer = await this.#readKv(valueName(version, stripe), context);
    const stored = answer?.value ? this.#parse(new Uint8Array(answer.value), stripe) : NOTHING;
    if (holdsAll(stored, chunks)) {
      this.#memory.set(frontName, stored);
      context.waitUntil(this.#putInFront(frontName, stored.value));
    } else if (answer) {
      context.onSuspect(version);
    }
    return this.#count(stored, chunks);
  }

  /** The stored frames of a stripe straight from KV. Rejects when KV fails: for the cache manager. */
  async load(version: string, stripe: number, { kv, connections }: CacheContext): Promise<readonly Frame[]> {
    const stored = await connections.run(() => kv.get(valueName(version, stripe), "arrayBuffer"));
    return stored ? this.#parse(new Uint8Array(stored), stripe).frames : [];
  }

  /** Stores a stripe's chunks, which the caller has verified. Rejects when KV fails. */
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

  /** Drops what this isolate's memory has of a version. */
  forget(version: string): void {
    for (const name of this.#memory.names()) if (name.startsWith(`chunks:${version}:`)) this.#memory.delete(name);
  }

  /** Takes note that a value read from here had wrong bytes. */
  async reportCorrupt(
    version: string,
    stripe: number,
    chunks: readonly number[],
    { onSuspect }: CacheContext,
  ): Promise<void> {
    onSuspect(version);
    const name = `${valueName(version, stripe)}:${chunks.join(",")}`;
    this.#memory.delete(name);
    await this.#putsInFront.get(name);
    await this.#frontCache.delete(name);
  }

  async #putInFront(name: string, bytes: Uint8Array): Promise<void> {
    // A put holds its bytes until it is done, and reads may be faster than puts.
    if (this.#bytesOnTheWay + bytes.length > PUTS_BYTES_MAX) return;
    this.#bytesOnTheWay += bytes.length;
    const put = this.#frontCache.put(name, bytes, FRONT_TTL_SECONDS);
    this.#putsInFront.set(name, put);
    await put;
    this.#putsInFront.delete(name);
    this.#bytesOnTheWay -= bytes.length;
  }

  /** What KV answers; undefined when it fails, hangs or did so a moment ago. */
  async #readKv(name: string, { kv, connections }: CacheContext): Promise<{ value: ArrayBuffer | null } | undefined> {
    if (this.#clock.now() < this.#pausedUntilMs) return undefined;
    const reading = connections.run(async () => ({ value: await kv.get(name, "arrayBuffer") }));
    const answer = await orUndefined(reading, KV_DEADLINE_MS, this.#clock);
    if (!answer) {
      this.#counters.kvFailures++;
      this.#pausedUntilMs = this.#clock.now() + PAUSE_MS;
    }
    return answer;
  }

  /** A malformed value counts as empty: an empty or truncated one, or one of another stripe. */
  #parse(bytes: Uint8Array, stripe: number): CachedStripe {
    try {
      const frames = parseFrames(bytes);
      if (frames.length > 0 && frames.every((frame) => frame.type === "chunk" && frame.stripe === stripe)) {
        return { value: bytes, bytes: bytes.length, frames };
      }
    } catch {
      // Told apart from a miss by its counter only: the chunks come from elsewhere.
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

export interface ChunkCacheCounters {
  /** Stripes found with every chunk that was promised. */
  hits: number;
  misses: number;
  /** Values that were not frames. */
  malformed: number;
  /** Reads that KV refused or did not answer in time. */
  kvFailures: number;
}

function holdsAll({ frames }: CachedStripe, chunks: readonly number[]): boolean {
  return chunks.every((chunk) => frames.some((frame) => frame.chunk === chunk));
}

function valueName(version: string, stripe: number): string {
  return `chunks:${version}:${stripe}`;
}
