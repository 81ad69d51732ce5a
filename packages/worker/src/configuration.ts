/**
 * The configuration in force: what this PoP caches and how it sees the regions. The cache manager publishes it as one KV
 * value each period; isolates keep it in memory.
 */
import type { Clock, Manifest } from "@agarose/core";
import { orNothing } from "./deadline.ts";

export interface Configuration {
  /** Grows with each publication. */
  readonly epoch: number;
  /** When it was published: milliseconds since 1970. */
  readonly at: number;
  /** By version: which chunks every stripe of it has in the chunk cache. */
  readonly cached: Readonly<Record<string, CachedObject>>;
  readonly regions: readonly RegionEstimate[];
}

export interface CachedObject {
  readonly key: string;
  /** Ascending chunk indices. */
  readonly chunks: readonly number[];
  readonly stripes: number;
  /** What it takes of the cache's capacity. */
  readonly bytes: number;
}

export interface RegionEstimate {
  readonly name: string;
  /** Time to the first byte, and its spread. */
  readonly meanMs: number;
  readonly sdMs: number;
  /** How much longer each byte takes; 0 or left out while that is not known. */
  readonly msPerByte?: number;
  readonly down: boolean;
}

/** Expected time of a region to deliver `bytes` bytes. */
export function deliveryMs(
  { meanMs, msPerByte = 0 }: Pick<RegionEstimate, "meanMs" | "msPerByte">,
  bytes: number,
): number {
  return meanMs + msPerByte * bytes;
}

/** Length of one chunk in a stripe of the usual size. */
export function shardBytes({ bytes, stripeBytes, k }: Pick<Manifest, "bytes" | "stripeBytes" | "k">): number {
  return Math.ceil(Math.min(bytes, stripeBytes) / k);
}

export const CONFIGURATION_NAME = "configuration";
export const CONFIGURATION_EMPTY: Configuration = { epoch: 0, at: 0, cached: {}, regions: [] };

/** From this age on a newer one is looked for, beside the reads that still use the old one. */
const FRESH_MS = 5_000;
/** From this age on reads wait for a newer one, at most `DEADLINE_MS`. */
const USABLE_MS = 120_000;
const DEADLINE_MS = 300;
const LOAD_MS = 5_000;

export class ConfigurationStore {
  readonly #clock: Clock;
  #current: Configuration = CONFIGURATION_EMPTY;
  #loadedMs = Number.NEGATIVE_INFINITY;
  #loading: Promise<void> | undefined;
  #loadingSinceMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The newest configuration that can be had without making a read wait for KV longer than a moment. */
  async get(kv: KVNamespace, waitUntil: (promise: Promise<unknown>) => void): Promise<Configuration> {
    const age = this.#clock.now() - this.#loadedMs;
    if (age < FRESH_MS) return this.#current;
    const now = this.#clock.now();
    // A load dies with the invocation that began it, so one that takes too long no longer counts.
    if (!this.#loading || now - this.#loadingSinceMs > 2 * LOAD_MS) {
      this.#loadingSinceMs = now;
      this.#loading = this.#load(kv);
      waitUntil(this.#loading);
    }
    if (age >= USABLE_MS) await orNothing(this.#loading, DEADLINE_MS, this.#clock);
    return this.#current;
  }

  /** What the cache manager has just published: this isolate need not wait for KV to show it. */
  set(configuration: Configuration): void {
    if (configuration.epoch < this.#current.epoch) return;
    this.#current = configuration;
    this.#loadedMs = this.#clock.now();
  }

  async #load(kv: KVNamespace): Promise<void> {
    const stored = await orNothing(kv.get(CONFIGURATION_NAME), LOAD_MS, this.#clock);
    this.#loading = undefined;
    // KV may show an older epoch for a minute, or nothing: what we have stays, and is tried again after a while.
    this.#loadedMs = this.#clock.now();
    const parsed = stored ? parseConfiguration(stored) : undefined;
    if (parsed && parsed.epoch > this.#current.epoch) this.#current = parsed;
  }
}

/** A stored configuration, or undefined when it is malformed: then nothing counts as cached. */
export function parseConfiguration(text: string): Configuration | undefined {
  try {
    const json = JSON.parse(text) as Configuration;
    const sound =
      Number.isSafeInteger(json.epoch) &&
      Number.isFinite(json.at) &&
      Array.isArray(json.regions) &&
      json.regions.every(({ meanMs, sdMs, msPerByte = 0 }) => [meanMs, sdMs, msPerByte].every(Number.isFinite)) &&
      Object.values(json.cached).every(isCachedObject);
    return sound ? json : undefined;
  } catch {
    return undefined;
  }
}

function isCachedObject(object: CachedObject): boolean {
  return (
    typeof object.key === "string" &&
    Number.isSafeInteger(object.stripes) &&
    Number.isSafeInteger(object.bytes) &&
    Array.isArray(object.chunks) &&
    object.chunks.every((chunk) => Number.isInteger(chunk) && chunk >= 0 && chunk < 256)
  );
}
