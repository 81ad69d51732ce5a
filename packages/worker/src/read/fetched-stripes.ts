/**
 * Stripes of which the Cache API of this data center has all data chunks for some minutes: those that reads have just
 * fetched from buckets (Agar and Sprout fill the cache on access), and those that exchanges add (`cache/exchange.ts`).
 * The next period fills KV with them and fetches nothing. Until then reads use them at once: plans name their chunks as
 * probable, because the Cache API may forget any entry, and no other data center has it.
 */
import type { Clock } from "@agarose/core";
import { encodeFrame, isRecord, parseFrames, stripeCount, type Frame, type Manifest } from "@agarose/core/format";
import { nameWith, type CacheContext } from "./chunk-cache.ts";
import type { FrontCache } from "./front-cache.ts";
import { PutsInFlight } from "./puts-in-flight.ts";

/** Five periods of a minute. */
export const KEPT_SECONDS = 300;
/** Two reads within this time make a stripe worth keeping: most objects are read once, and no cache wants them. */
const AGAIN_MS = 600_000;
const NOTED_MAX = 4_096;
/** A get, or a put. */
const OPERATIONS = 1;
/** The name of the list of objects that exchanges have kept, and how often an isolate looks at it. */
const LIST_NAME = "probable";
const LIST_MS = 2_000;

/** The note about a stripe: when it was read first, or until when it is kept. Milliseconds of the clock. */
interface Noted {
  readonly untilMs: number;
  readonly state: "read" | "being kept" | "kept";
}

/** The stripes that the reads of one isolate keep and use. */
export class FetchedStripes {
  readonly #frontCache: FrontCache;
  readonly #clock: Clock;
  readonly #now: () => number;
  readonly #isUsed: boolean;
  /** Oldest first. */
  readonly #noted = new Map<string, Noted>();
  readonly #puts: PutsInFlight;
  /** By version: until when it is kept whole, in milliseconds since 1970. */
  #listed: ReadonlyMap<string, number> = new Map();
  #listedMs = Number.NEGATIVE_INFINITY;
  /** By version: an entry of the list that the Cache API has forgotten. */
  readonly #forgotten = new Map<string, number>();

  /**
   * @param now milliseconds since 1970.
   * @param isUsed whether reads use what is kept; otherwise periods alone do.
   */
  constructor(frontCache: FrontCache, clock: Clock, now: () => number, isUsed: boolean) {
    this.#frontCache = frontCache;
    this.#clock = clock;
    this.#now = now;
    this.#isUsed = isUsed;
    this.#puts = new PutsInFlight(clock);
  }

  /** Notes that a read has got the data shards of a stripe from buckets, and keeps them from the second read on. */
  note(version: string, stripe: number, data: readonly Uint8Array[], { spend, waitUntil }: CacheContext): void {
    const name = nameOf(version, stripe, data.length);
    const nowMs = this.#clock.now();
    const noted = this.#noted.get(name);
    const isKnown = noted !== undefined && nowMs < noted.untilMs;
    if (isKnown && noted.state !== "read") return;
    const bytes = data.reduce((sum, shard) => sum + shard.length, 0);
    const isKept = isKnown && this.#puts.hasRoom(bytes) && spend(OPERATIONS);
    this.#set(name, isKept ? "being kept" : "read", nowMs + (isKept ? KEPT_SECONDS * 1_000 : AGAIN_MS));
    if (isKept) waitUntil(this.#keep(version, stripe, data, bytes));
  }

  /** Keeps the verified data shards of a stripe. Never rejects: the Cache API may forget them at once. */
  async keep(version: string, stripe: number, data: readonly Uint8Array[]): Promise<void> {
    const value = new Blob(data.map((shard, chunk) => encodeFrame("chunk", stripe, chunk, shard)));
    await this.#frontCache.put(
      nameOf(version, stripe, data.length),
      new Uint8Array(await value.arrayBuffer()),
      KEPT_SECONDS,
    );
  }

  /** Resolves to the frames of a stripe of k data chunks, unverified and possibly none. Never rejects. */
  async find(version: string, stripe: number, k: number, { connections }: CacheContext): Promise<readonly Frame[]> {
    const found = await connections.run(() => this.#frontCache.get(nameOf(version, stripe, k)));
    try {
      return found ? parseFrames(found) : [];
    } catch {
      return [];
    }
  }

  /** Returns the data chunks of an object whose stripes are all kept, or undefined. */
  probable(manifest: Manifest, { spend, waitUntil }: CacheContext): readonly number[] | undefined {
    if (!this.#isUsed) return undefined;
    const nowMs = this.#clock.now();
    if (nowMs - this.#listedMs >= LIST_MS && spend(OPERATIONS)) {
      this.#listedMs = nowMs;
      waitUntil(this.#load());
    }
    const { version, k } = manifest;
    const listedMs = this.#listed.get(version) ?? 0;
    const isListed = this.#now() < listedMs && this.#forgotten.get(version) !== listedMs;
    return isListed || this.#keepsAll(manifest) ? Array.from({ length: k }, (_, chunk) => chunk) : undefined;
  }

  /** Notes that a version is no longer kept. */
  forget(version: string): void {
    const listedMs = this.#listed.get(version);
    if (listedMs !== undefined) this.#forgotten.set(version, listedMs);
    for (const [name, { state }] of this.#noted) {
      if (state === "kept" && name.startsWith(`chunks:${version}:`)) this.#noted.delete(name);
    }
  }

  /** Publishes the versions that exchanges have kept, and until when, to all isolates of this data center. */
  async publish(kept: ReadonlyMap<string, number>): Promise<void> {
    const text = JSON.stringify(Object.fromEntries(kept));
    await this.#frontCache.put(LIST_NAME, new TextEncoder().encode(text), KEPT_SECONDS);
  }

  async #load(): Promise<void> {
    const bytes = await this.#frontCache.get(LIST_NAME);
    if (!bytes) return;
    try {
      const list: unknown = JSON.parse(new TextDecoder().decode(bytes));
      if (isRecord(list)) this.#listed = new Map(Object.entries(list).map(([version, ms]) => [version, Number(ms)]));
    } catch {
      // An entry that is not a list is as good as none.
    }
    for (const [version, ms] of this.#forgotten) if (this.#listed.get(version) !== ms) this.#forgotten.delete(version);
  }

  #keepsAll(manifest: Manifest): boolean {
    const { version, k } = manifest;
    const nowMs = this.#clock.now();
    const stripes = stripeCount(manifest);
    for (let stripe = 0; stripe < stripes; stripe++) {
      const noted = this.#noted.get(nameOf(version, stripe, k));
      if (noted?.state !== "kept" || nowMs >= noted.untilMs) return false;
    }
    return stripes > 0;
  }

  async #keep(version: string, stripe: number, data: readonly Uint8Array[], bytes: number): Promise<void> {
    const name = nameOf(version, stripe, data.length);
    await this.#puts.add(name, bytes, this.keep(version, stripe, data));
    const noted = this.#noted.get(name);
    if (noted) this.#set(name, "kept", noted.untilMs);
  }

  #set(name: string, state: Noted["state"], untilMs: number): void {
    this.#noted.delete(name);
    this.#noted.set(name, { untilMs, state });
    if (this.#noted.size > NOTED_MAX) this.#noted.delete(this.#noted.keys().next().value!);
  }
}

/** The name by which the chunk cache finds the data chunks of a stripe. */
function nameOf(version: string, stripe: number, k: number): string {
  return nameWith(
    version,
    stripe,
    Array.from({ length: k }, (_, chunk) => chunk),
  );
}
