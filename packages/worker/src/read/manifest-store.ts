/**
 * Manifests by key: this isolate's memory, then the Cache API, then the buckets. One setting limits how long a key may
 * keep naming an old version, counted from the read of the bucket. An expired manifest is kept: by it, cached chunks
 * stay readable while no bucket answers. A key without an object is remembered for some seconds, too.
 */
import {
  AgaroseError,
  ByteLru,
  encodeKey,
  encodeManifest,
  isTombstone,
  parseKey,
  parseManifest,
  toAgaroseError,
  type Clock,
  type ExpectedManifest,
  type Manifest,
} from "@agarose/core";
import { orUndefined } from "../platform/async.ts";
import type { FrontCache } from "./front-cache.ts";

export interface ManifestStoreOptions extends Pick<ExpectedManifest, "trust" | "sha256"> {
  readonly ttlSeconds: number;
  readonly regions: ReadonlySet<string>;
  readonly frontCache: FrontCache;
  readonly clock: Clock;
  /** Milliseconds since 1970, which all isolates agree on. */
  readonly now: () => number;
}

/** What a lookup needs of the invocation that makes it. */
export interface LookupContext {
  /** Finds the manifest in the buckets, none older than `generationMin`; rejects as `findManifest` does. */
  readonly find: (key: string, generationMin: number) => Promise<Manifest>;
  readonly waitUntil: (promise: Promise<unknown>) => void;
}

/** Bounds the memory of one isolate: hashes are most of a manifest, and each counts once as text. */
const ENTRIES_BYTES_MAX = 16 * 1024 * 1024;
/** A lookup that another invocation began may die with that invocation; after this long, we look ourselves. */
const SHARED_LOOKUP_MS = 10_000;
/** How long a read waits for a newer manifest before it uses the one that has expired. */
const RENEWAL_PATIENCE_MS = 1_000;
/** After buckets did not answer, the expired manifest is used for this long before they are asked again. */
const RETRY_AFTER_MS = 5_000;
/** How long an expired manifest is kept for the case that no bucket answers. */
const KEEP_SECONDS = 86_400;

/** Cache API calls of one `forget`. */
const FORGET_MAX = 500;

/** How long a key without an object is remembered: a put is visible after that. */
const ABSENT_MS_MAX = 10_000;
const ABSENT_BYTES_MAX = 2 * 1024 * 1024;

interface Entry {
  readonly manifest: Manifest;
  readonly bytes: number;
  readonly expiresMs: number;
}

export class ManifestStore {
  readonly #options: ManifestStoreOptions;
  readonly #entries = new ByteLru<Entry>(ENTRIES_BYTES_MAX);
  /** Keys without an object, by key. */
  readonly #absent = new ByteLru<{ readonly bytes: number; readonly expiresMs: number }>(ABSENT_BYTES_MAX);
  readonly #lookups = new Map<string, Promise<Manifest>>();

  constructor(options: ManifestStoreOptions) {
    this.#options = options;
  }

  /**
   * The manifest of `key`: an expired one only when the buckets do not answer or are late. Rejects as `findManifest`
   * does. Concurrent misses of a key share one lookup.
   */
  async get(key: string, context: LookupContext): Promise<Manifest> {
    parseKey(key);
    const known = this.#entries.get(key);
    if (known && this.#isFresh(known)) return known.manifest;
    if (this.#isAbsent(key)) throw notFound(key);
    const renew = (): Promise<Manifest> => this.#lookUp(key, context, () => this.#renew(key, context));
    const outcome = (this.#lookups.get(key) ?? renew()).then(
      (manifest) => ({ manifest }),
      (error: unknown) => ({ error }),
    );
    const settled = await orUndefined(outcome, known ? RENEWAL_PATIENCE_MS : SHARED_LOOKUP_MS, this.#options.clock);
    if (!settled) return known?.manifest ?? renew();
    if ("error" in settled) throw settled.error;
    return settled.manifest;
  }

  /** Returns whether this isolate or this data center knows the key's object, without a look into the buckets. */
  async isKnown(key: string): Promise<boolean> {
    return this.#entries.get(key) !== undefined || (await this.#fromFrontCache(key)) !== undefined;
  }

  /**
   * Resolves to the manifest of `key` as the buckets have it now: for when the one in use turned out to be outdated.
   */
  refetch(key: string, context: LookupContext): Promise<Manifest> {
    const generationMin = this.#entries.get(key)?.manifest.generation ?? 0;
    return this.#lookUp(key, context, () => this.#fromBuckets(key, context, generationMin));
  }

  /**
   * Drops the manifests that `matches`, from memory, and those of `keys` from the Cache API of this data center too.
   */
  async forget(matches: (key: string) => boolean, keys: readonly string[]): Promise<void> {
    const known = this.#entries.names().filter(matches);
    for (const key of known) this.#entries.delete(key);
    for (const key of this.#absent.names().filter(matches)) this.#absent.delete(key);
    for (const key of this.#lookups.keys()) if (matches(key)) this.#lookups.delete(key);
    const named = [...new Set([...known, ...keys])].slice(0, FORGET_MAX);
    await Promise.all(named.map((key) => this.#options.frontCache.delete(cacheName(key))));
  }

  /** An entry beyond the longest term was noted by a clock that is ahead: its age is unknown, so it is not fresh. */
  #isFresh({ expiresMs }: Entry): boolean {
    const { ttlSeconds, now } = this.#options;
    const leftMs = expiresMs - now();
    return leftMs > 0 && leftMs <= Math.max(ttlSeconds * 1000, RETRY_AFTER_MS);
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

  async #renew(key: string, context: LookupContext): Promise<Manifest> {
    const { now } = this.#options;
    const inFront = await this.#fromFrontCache(key);
    if (!inFront && this.#isAbsent(key)) throw notFound(key);
    if (inFront && this.#isFresh(inFront)) {
      this.#entries.set(key, inFront);
      return inFront.manifest;
    }
    const known = this.#entries.get(key) ?? inFront;
    try {
      return await this.#fromBuckets(key, context, known?.manifest.generation ?? 0);
    } catch (error) {
      if (!known || !isUnreachable(error)) throw error;
      this.#entries.set(key, { ...known, expiresMs: now() + RETRY_AFTER_MS });
      return known.manifest;
    }
  }

  async #fromFrontCache(key: string): Promise<Entry | undefined> {
    const { frontCache, regions, trust, sha256 } = this.#options;
    const stored = await frontCache.get(cacheName(key));
    if (!stored) return undefined;
    try {
      const expiresMs = new DataView(stored.buffer, stored.byteOffset).getFloat64(0);
      const text = stored.subarray(8);
      if (text.length === 0) {
        this.#rememberAbsent(key, expiresMs);
        return undefined;
      }
      const manifest = await parseManifest(text, { key, regions, trust, sha256 });
      return isTombstone(manifest) ? undefined : { manifest, bytes: text.length, expiresMs };
    } catch {
      return undefined;
    }
  }

  async #fromBuckets(key: string, { find, waitUntil }: LookupContext, generationMin: number): Promise<Manifest> {
    const { ttlSeconds, frontCache, now } = this.#options;
    const manifest = await find(key, generationMin).catch((error: unknown) => {
      if (toAgaroseError(error).code === "OBJECT_NOT_FOUND") this.#noteAbsent(key, waitUntil);
      throw error;
    });
    this.#absent.delete(key);
    const text = encodeManifest(manifest);
    const expiresMs = now() + ttlSeconds * 1000;
    this.#entries.set(key, { manifest, bytes: text.length, expiresMs });
    const stored = new Uint8Array(8 + text.length);
    new DataView(stored.buffer).setFloat64(0, expiresMs);
    stored.set(text, 8);
    waitUntil(frontCache.put(cacheName(key), stored, Math.max(ttlSeconds, KEEP_SECONDS)));
    return manifest;
  }

  #noteAbsent(key: string, waitUntil: LookupContext["waitUntil"]): void {
    const { ttlSeconds, frontCache, now } = this.#options;
    const ms = Math.min(ABSENT_MS_MAX, ttlSeconds * 1000);
    if (ms === 0) return;
    const expiresMs = now() + ms;
    this.#rememberAbsent(key, expiresMs);
    if (this.#entries.get(key)) return;
    const stored = new Uint8Array(8);
    new DataView(stored.buffer).setFloat64(0, expiresMs);
    waitUntil(frontCache.put(cacheName(key), stored, Math.ceil(ms / 1000)));
  }

  #rememberAbsent(key: string, expiresMs: number): void {
    this.#absent.set(key, { bytes: 64 + 2 * key.length, expiresMs });
  }

  #isAbsent(key: string): boolean {
    const absent = this.#absent.get(key);
    if (!absent) return false;
    const leftMs = absent.expiresMs - this.#options.now();
    if (leftMs > 0 && leftMs <= ABSENT_MS_MAX) return true;
    this.#absent.delete(key);
    return false;
  }
}

function notFound(key: string): AgaroseError {
  return new AgaroseError(
    "OBJECT_NOT_FOUND",
    `no object ${JSON.stringify(key)} a moment ago: check the key with \`agarose ls\``,
    { key },
  );
}

/** Whether buckets gave no answer, as against one that we must not cover up. */
function isUnreachable(error: unknown): boolean {
  const { code } = toAgaroseError(error);
  return code === "NO_SOURCE" || code === "SOURCE_FAILED" || code === "READ_TIMEOUT";
}

function cacheName(key: string): string {
  return `manifests/${encodeKey(key)}`;
}
