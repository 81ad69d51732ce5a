/**
 * Stripes that reads at this PoP have just fetched from buckets, for the next period: a fill takes them without another
 * request (Agar and Sprout fill the cache on access). They lie in the Cache API, because the period runs in another
 * isolate. In another data center it misses them, and fetches.
 */
import type { Clock } from "@agarose/core";
import { encodeFrame, parseFrames, type Frame } from "@agarose/core/format";
import type { CacheContext } from "./chunk-cache.ts";
import type { FrontCache } from "./front-cache.ts";

/** Five periods of a minute. */
const KEPT_SECONDS = 300;
/** Two reads within this time make a stripe worth keeping: most objects are read once, and no cache wants them. */
const AGAIN_MS = 600_000;
const NOTED_MAX = 4_096;
/** A get, or a put. */
const OPERATIONS = 1;
/** Bytes on their way into the Cache API: a put holds them until it ends. */
const PUTS_BYTES_MAX = 16 * 1024 * 1024;

/** The stripes that the reads of one isolate keep. */
export class FetchedStripes {
  readonly #frontCache: FrontCache;
  readonly #clock: Clock;
  /** When a stripe was read first, or until when it is kept; oldest first. */
  readonly #noted = new Map<string, { readonly untilMs: number; readonly isKept: boolean }>();
  #bytesInFlight = 0;

  constructor(frontCache: FrontCache, clock: Clock) {
    this.#frontCache = frontCache;
    this.#clock = clock;
  }

  /** Notes that a read has got the data shards of a stripe from buckets, and keeps them from the second read on. */
  note(version: string, stripe: number, data: readonly Uint8Array[], { spend, waitUntil }: CacheContext): void {
    const name = nameOf(version, stripe);
    const nowMs = this.#clock.now();
    const noted = this.#noted.get(name);
    const isSecond = noted !== undefined && nowMs < noted.untilMs && !noted.isKept;
    if (noted && nowMs < noted.untilMs && noted.isKept) return;
    const bytes = data.reduce((sum, shard) => sum + shard.length, 0);
    const isKept = isSecond && this.#bytesInFlight + bytes <= PUTS_BYTES_MAX && spend(OPERATIONS);
    this.#noted.delete(name);
    this.#noted.set(name, { untilMs: nowMs + (isKept ? KEPT_SECONDS * 1_000 : AGAIN_MS), isKept });
    if (this.#noted.size > NOTED_MAX) this.#noted.delete(this.#noted.keys().next().value!);
    if (isKept) waitUntil(this.#keep(name, stripe, data, bytes));
  }

  /** Resolves to the frames of a stripe, unverified and possibly none. Never rejects. */
  async find(version: string, stripe: number, { connections }: CacheContext): Promise<readonly Frame[]> {
    const found = await connections.run(() => this.#frontCache.get(nameOf(version, stripe)));
    try {
      return found ? parseFrames(found) : [];
    } catch {
      return [];
    }
  }

  async #keep(name: string, stripe: number, data: readonly Uint8Array[], bytes: number): Promise<void> {
    this.#bytesInFlight += bytes;
    try {
      const value = new Blob(data.map((shard, chunk) => encodeFrame("chunk", stripe, chunk, shard)));
      await this.#frontCache.put(name, new Uint8Array(await value.arrayBuffer()), KEPT_SECONDS);
    } finally {
      this.#bytesInFlight -= bytes;
    }
  }
}

function nameOf(version: string, stripe: number): string {
  return `fetched:${version}:${stripe}`;
}
