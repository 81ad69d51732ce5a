/**
 * Manifests by key: this isolate's memory, then the Cache API, then the buckets. How long a key may go on naming an old
 * version is one setting, and it counts from the moment the manifest was read in a bucket.
 */
import { encodeKey, encodeManifest, parseKey, parseManifest, type Clock, type Manifest } from "@agarose/core";
import { orNothing } from "./deadline.ts";
import type { FrontCache } from "./front-cache.ts";

export interface ManifestStoreOptions {
  readonly ttlSeconds: number;
  readonly regions: ReadonlySet<string>;
  readonly frontCache: FrontCache;
  readonly clock: Clock;
  /** Milliseconds since 1970, which all isolates agree on. */
  readonly now: () => number;
}

/** What a lookup needs of the invocation that makes it. */
export interface LookupContext {
  /** Finds the manifest in the buckets; rejects as `findManifest` does. */
  readonly find: (key: string) => Promise<Manifest>;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

/** Bounds the memory of one isolate: hashes are most of a manifest, and each counts once as text. */
const ENTRIES_BYTES_MAX = 16 * 1024 * 1024;
/** A lookup that another invocation began may die with that invocation; after this long, we look ourselves. */
const SHARED_LOOKUP_MS = 10_000;

interface Entry {
  readonly manifest: Manifest;
  readonly bytes: number;
  readonly expiresMs: number;
}

export class ManifestStore {
  readonly #options: ManifestStoreOptions;
  /** Least recently used first. */
  readonly #entries = new Map<string, Entry>();
  readonly #lookups = new Map<string, Promise<Manifest>>();
  #entriesBytes = 0;

  constructor(options: ManifestStoreOptions) {
    this.#options = options;
  }

  /** The manifest of `key`. Rejects as `findManifest` does. Concurrent misses of a key share one lookup. */
  async get(key: string, context: LookupContext): Promise<Manifest> {
    parseKey(key);
    const known = this.#remembered(key);
    if (known) return known;
    const running = this.#lookups.get(key);
    if (running) {
      const shared = await orNothing(
        running.then(
          (manifest) => ({ manifest }),
          (error: unknown) => ({ error }),
        ),
        SHARED_LOOKUP_MS,
        this.#options.clock,
      );
      if (shared && "manifest" in shared) return shared.manifest;
      if (shared) throw shared.error;
    }
    return this.#lookUp(key, context, async () => (await this.#fromFrontCache(key)) ?? this.#fromBuckets(key, context));
  }

  /** The manifest of `key` as the buckets have it now: for when the one in use turned out to be outdated. */
  refetch(key: string, context: LookupContext): Promise<Manifest> {
    return this.#lookUp(key, context, () => this.#fromBuckets(key, context));
  }

  async #lookUp(key: string, { waitUntil }: LookupContext, look: () => Promise<Manifest>): Promise<Manifest> {
    const lookup = look().finally(() => {
      if (this.#lookups.get(key) === lookup) this.#lookups.delete(key);
    });
    this.#lookups.set(key, lookup);
    // Others may wait for it even when the client of this invocation has gone.
    waitUntil(lookup.catch(() => {}));
    return lookup;
  }

  async #fromFrontCache(key: string): Promise<Manifest | undefined> {
    const { frontCache, regions } = this.#options;
    const stored = await frontCache.get(cacheName(key));
    if (!stored) return undefined;
    try {
      const expiresMs = new DataView(stored.buffer, stored.byteOffset).getFloat64(0);
      if (expiresMs <= this.#options.now()) return undefined;
      const text = stored.subarray(8);
      const manifest = parseManifest(text, { key, regions });
      this.#remember(key, { manifest, bytes: text.length, expiresMs });
      return manifest;
    } catch {
      return undefined;
    }
  }

  async #fromBuckets(key: string, { find, waitUntil }: LookupContext): Promise<Manifest> {
    const { ttlSeconds, frontCache } = this.#options;
    const manifest = await find(key);
    const text = encodeManifest(manifest);
    const expiresMs = this.#options.now() + ttlSeconds * 1000;
    this.#remember(key, { manifest, bytes: text.length, expiresMs });
    const stored = new Uint8Array(8 + text.length);
    new DataView(stored.buffer).setFloat64(0, expiresMs);
    stored.set(text, 8);
    if (ttlSeconds > 0) waitUntil(frontCache.put(cacheName(key), stored, ttlSeconds));
    return manifest;
  }

  #remembered(key: string): Manifest | undefined {
    const entry = this.#entries.get(key);
    if (!entry) return undefined;
    this.#forget(key);
    if (entry.expiresMs <= this.#options.now()) return undefined;
    this.#remember(key, entry);
    return entry.manifest;
  }

  #remember(key: string, entry: Entry): void {
    this.#forget(key);
    this.#entries.set(key, entry);
    this.#entriesBytes += entry.bytes;
    for (const oldest of this.#entries.keys()) {
      if (this.#entriesBytes <= ENTRIES_BYTES_MAX) break;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const entry = this.#entries.get(key);
    if (!entry) return;
    this.#entries.delete(key);
    this.#entriesBytes -= entry.bytes;
  }
}

function cacheName(key: string): string {
  return `manifests/${encodeKey(key)}`;
}
