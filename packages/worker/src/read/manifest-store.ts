/**
 * Manifests by key: this isolate's memory, then the Cache API, then the buckets. One setting limits how long a key may
 * keep naming an old version, counted from the read of the buckets. An expired manifest is kept: by it, cached chunks
 * stay readable while no bucket answers. A key without an object is remembered for some seconds, too.
 *
 * A region can have missed a put. So a key that is not known is answered by the first sound manifest, which a majority
 * of the regions confirms or replaces a moment later, and a key that is known is renewed by a majority. From half of
 * its time on, a read renews it beside itself, so that readers of a hot key wait for no far region.
 *
 * Lookups never go back behind the newest generation that this isolate has seen of a key, tombstones included. An
 * isolate that starts takes that generation from the Cache API, which may keep it for a day.
 */
import { AgaroseError, toAgaroseError, type Clock } from "@agarose/core";
import { Flights, orUndefined } from "@agarose/core/async";
import {
  encodeKey,
  encodeManifest,
  isTombstone,
  parseKey,
  parseManifest,
  type ExpectedManifest,
  type Manifest,
} from "@agarose/core/format";
import { ByteLru } from "@agarose/core/read";
import type { TaggedManifest } from "@agarose/core/sources";
import type { FrontCache } from "./front-cache.ts";

/** Dependencies of a store. A manifest is used for `ttlSeconds` after it was read from a bucket. */
interface ManifestStoreOptions extends Pick<ExpectedManifest, "trust" | "sha256"> {
  readonly ttlSeconds: number;
  readonly regions: ReadonlySet<string>;
  readonly frontCache: FrontCache;
  readonly clock: Clock;
  /** Milliseconds since 1970, which all isolates agree on. */
  readonly now: () => number;
}

/** The parts of its invocation that a lookup needs. */
export interface LookupContext {
  /**
   * Finds the manifest in the buckets, none older than `generationMin`: what a majority has, or the first sound one.
   * `known` is the one in memory, which a region need not send again. Rejects as `findManifest` does.
   */
  readonly find: (
    key: string,
    generationMin: number,
    consistency: Consistency,
    known?: TaggedManifest,
  ) => Promise<FoundManifest>;
  readonly waitUntil: (promise: Promise<unknown>) => void;
  /** Runs `task`, which no read waits for, when it does not hold up the requests of reads. */
  readonly later: (task: () => Promise<unknown>) => void;
}

/** A manifest of the buckets, and whether a majority of the regions has it. */
export interface FoundManifest {
  readonly manifest: Manifest;
  readonly isConfirmed: boolean;
  /** Of the copies that confirm it. */
  readonly tags?: TaggedManifest["tags"] | undefined;
}

/** In S3's words: the newest version that a majority of the regions has, or perhaps one before it. */
export type Consistency = "strong" | "eventual";

/** A manifest that no majority has confirmed is used for this long, if that fails. Then a read waits for a majority. */
const UNCONFIRMED_MS_MAX = 10_000;
/** Bounds the memory of one isolate: hashes are most of a manifest, and each counts once as text. */
const ENTRIES_BYTES_MAX = 16 * 1024 * 1024;
/** A lookup that another invocation began may die with that invocation; after this long, it counts as dead. */
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
/** Generations of removed objects. */
const REMOVED_BYTES_MAX = 1024 * 1024;
/** The memory of the entity tag of one region. */
const TAG_BYTES = 100;
/** The head of a manifest in the Cache API: when it expires, and the newest generation seen, as float64. */
const HEAD_BYTES = 16;

const NOTHING = new Uint8Array(0);

interface Entry {
  readonly manifest: Manifest;
  readonly bytes: number;
  readonly expiresMs: number;
  /** From then on a read renews it in the background. */
  readonly renewMs: number;
  readonly tags?: TaggedManifest["tags"] | undefined;
}

/** Finds manifests by key, and remembers them within bounds of memory. */
export class ManifestStore {
  readonly #options: ManifestStoreOptions;
  readonly #entries = new ByteLru<Entry>(ENTRIES_BYTES_MAX);
  /** Keys without an object, by key. */
  readonly #absent = new ByteLru<{ readonly bytes: number; readonly expiresMs: number }>(ABSENT_BYTES_MAX);
  /** The generation of the newest tombstone seen, by key. */
  readonly #removed = new ByteLru<{ readonly bytes: number; readonly generation: number }>(REMOVED_BYTES_MAX);
  readonly #lookups: Flights<Manifest>;

  constructor(options: ManifestStoreOptions) {
    this.#options = options;
    this.#lookups = new Flights(options.clock, SHARED_LOOKUP_MS);
  }

  /**
   * The manifest of `key`: an expired one only when the buckets do not answer or are late. Rejects as `findManifest`
   * does. Concurrent misses of a key share one lookup.
   */
  async get(key: string, context: LookupContext): Promise<Manifest> {
    parseKey(key);
    const known = this.#entries.get(key);
    if (known && this.#isFresh(known)) {
      if (this.#options.now() >= known.renewMs) this.#renewEarly(key, known, context);
      return known.manifest;
    }
    if (this.#isAbsent(key)) throw this.#notFound(key);
    const renew = (): Promise<Manifest> => this.#lookUp(key, context, () => this.#renew(key, context));
    const shared = this.#lookups.get(key)?.work;
    const outcome = (shared ?? renew()).then(
      (manifest) => ({ manifest }),
      (error: unknown) => ({ error }),
    );
    const settled = await orUndefined(outcome, known ? RENEWAL_PATIENCE_MS : SHARED_LOOKUP_MS, this.#options.clock);
    if (!settled) return known?.manifest ?? renew();
    if (!("error" in settled)) return settled.manifest;
    const { error } = settled;
    const isLimited = toAgaroseError(error).code === "RATE_LIMITED";
    if (known && (isLimited || isUnreachable(error))) return known.manifest;
    // It was the client of another invocation that may look no more keys up.
    if (shared && isLimited) return renew();
    throw error;
  }

  /**
   * Resolves to the manifest of `key` as the buckets have it now: for when the one in use turned out to be outdated.
   */
  refetch(key: string, context: LookupContext): Promise<Manifest> {
    return this.#lookUp(key, context, () => this.#fromBuckets(key, context, "strong"));
  }

  /**
   * Drops the manifests that `matches`, from memory, and those of `keys` from the Cache API of this data center too.
   */
  async forget(matches: (key: string) => boolean, keys: readonly string[]): Promise<void> {
    const known = this.#entries.names().filter(matches);
    for (const key of known) this.#entries.delete(key);
    for (const key of this.#absent.names().filter(matches)) this.#absent.delete(key);
    for (const key of this.#removed.names().filter(matches)) this.#removed.delete(key);
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
    const manifest = this.#lookups.lead(key, look()).work;
    // Others may wait for it even when the client of this invocation has gone.
    waitUntil(manifest.catch(() => {}));
    return manifest;
  }

  /** Starts to renew a fresh entry, which stays as it is if that fails: then it expires when it would have. */
  #renewEarly(key: string, known: Entry, context: LookupContext): void {
    if (this.#lookups.get(key)) return;
    const { now } = this.#options;
    this.#entries.set(key, { ...known, renewMs: now() + RETRY_AFTER_MS });
    const look = async (): Promise<Manifest> => {
      const inFront = await this.#fromFrontCache(key);
      if (!inFront || now() >= inFront.renewMs) return this.#fromBuckets(key, context, "strong", known);
      // Another isolate has renewed it.
      this.#entries.set(key, inFront);
      return inFront.manifest;
    };
    void this.#lookUp(key, context, look).catch(() => {});
  }

  async #renew(key: string, context: LookupContext): Promise<Manifest> {
    const { now } = this.#options;
    const inFront = await this.#fromFrontCache(key);
    if (!inFront && this.#isAbsent(key)) throw this.#notFound(key);
    if (inFront && this.#isFresh(inFront)) {
      this.#entries.set(key, inFront);
      return inFront.manifest;
    }
    const known = inFront ?? this.#entries.get(key);
    if (known) this.#entries.set(key, known);
    try {
      if (known || this.#newestSeen(key) > 0) return await this.#fromBuckets(key, context, "strong");
      return await this.#fromBuckets(key, context, "eventual");
    } catch (error) {
      if (!known || !isUnreachable(error)) throw error;
      // Another lookup has found more in the meantime.
      if (known.manifest.generation < this.#newestSeen(key)) return this.#newest(key);
      this.#entries.set(key, { ...known, expiresMs: now() + RETRY_AFTER_MS });
      return known.manifest;
    }
  }

  async #fromFrontCache(key: string): Promise<Entry | undefined> {
    const { frontCache, regions, trust, sha256, ttlSeconds } = this.#options;
    const stored = await frontCache.get(cacheName(key));
    if (!stored) return undefined;
    try {
      const head = new DataView(stored.buffer, stored.byteOffset, HEAD_BYTES);
      const expiresMs = head.getFloat64(0);
      const text = stored.subarray(HEAD_BYTES);
      if (text.length === 0) {
        this.#noteRemoved(key, head.getFloat64(8));
        this.#rememberAbsent(key, expiresMs);
        return undefined;
      }
      const manifest = await parseManifest(text, { key, regions, trust, sha256 });
      // An isolate that had not seen the newest one may have written it.
      if (isTombstone(manifest) || manifest.generation < this.#newestSeen(key)) return undefined;
      const held = this.#entries.get(key);
      const tags = held?.manifest.generation === manifest.generation ? held.tags : undefined;
      return { manifest, bytes: bytesOf(manifest, tags), expiresMs, renewMs: expiresMs - ttlSeconds * 500, tags };
    } catch {
      return undefined;
    }
  }

  /** @param fresh what is in force in the meantime, if it is. */
  async #fromBuckets(key: string, context: LookupContext, consistency: Consistency, fresh?: Entry): Promise<Manifest> {
    const { find, waitUntil, later } = context;
    const { ttlSeconds, now } = this.#options;
    const generationMin = this.#newestSeen(key);
    // The version may be replaced from this moment on.
    const sinceMs = now();
    const held = this.#entries.get(key);
    const known = held?.tags && { manifest: held.manifest, tags: held.tags };
    const found = await find(key, generationMin, consistency, known).catch((error: unknown) => {
      const { code, details } = toAgaroseError(error);
      if (code === "OBJECT_NOT_FOUND") this.#noteAbsent(key, Number(details["generation"] ?? 0), waitUntil);
      throw error;
    });
    const { manifest, isConfirmed, tags } = found;
    // Another lookup was faster, and at a region that knew more.
    const isOvertaken = manifest.generation >= generationMin && manifest.generation < this.#newestSeen(key);
    if (isOvertaken) return this.#newest(key);
    // A manifest that a majority has confirmed is better than the same one without.
    if (fresh && !isConfirmed && manifest.generation === fresh.manifest.generation) return manifest;
    this.#absent.delete(key);
    this.#removed.delete(key);
    const heldMs = Math.min(ttlSeconds * 1000, isConfirmed ? Number.POSITIVE_INFINITY : UNCONFIRMED_MS_MAX);
    const expiresMs = sinceMs + heldMs;
    const bytes = bytesOf(manifest, tags);
    this.#entries.set(key, { manifest, bytes, expiresMs, renewMs: sinceMs + heldMs / 2, tags });
    // Its encoding would hold up the other reads of a page.
    later(async () => {
      await this.#share(key, manifest, expiresMs);
      if (consistency === "eventual" && heldMs > 0) await this.#fromBuckets(key, context, "strong");
    });
    return manifest;
  }

  /** Returns the newest generation of `key` that this isolate has seen; 0 for none. */
  #newestSeen(key: string): number {
    return Math.max(this.#entries.get(key)?.manifest.generation ?? 0, this.#removed.get(key)?.generation ?? 0);
  }

  /** Returns the newest manifest. Throws OBJECT_NOT_FOUND where that is a tombstone. */
  #newest(key: string): Manifest {
    const newest = this.#entries.get(key);
    if (newest) return newest.manifest;
    throw this.#notFound(key);
  }

  /** Stores a manifest for the other isolates of the PoP, unless it was replaced or forgotten in the meantime. */
  async #share(key: string, manifest: Manifest, expiresMs: number): Promise<void> {
    if (this.#entries.get(key)?.manifest !== manifest) return;
    const { generation } = manifest;
    const seconds = Math.max(this.#options.ttlSeconds, KEEP_SECONDS);
    await this.#store(key, { text: encodeManifest(manifest), expiresMs, generation }, seconds);
  }

  #store(
    key: string,
    { text, expiresMs, generation }: { text: Uint8Array; expiresMs: number; generation: number },
    ttlSeconds: number,
  ): Promise<void> {
    const stored = new Uint8Array(HEAD_BYTES + text.length);
    const head = new DataView(stored.buffer);
    head.setFloat64(0, expiresMs);
    head.setFloat64(8, generation);
    stored.set(text, HEAD_BYTES);
    return this.#options.frontCache.put(cacheName(key), stored, ttlSeconds);
  }

  /** @param removedAs generation of the tombstone that was found; 0 where there is nothing at all. */
  #noteAbsent(key: string, removedAs: number, waitUntil: LookupContext["waitUntil"]): void {
    const { ttlSeconds, now } = this.#options;
    this.#noteRemoved(key, removedAs);
    const ms = Math.min(ABSENT_MS_MAX, ttlSeconds * 1000);
    if (ms === 0 && removedAs === 0) return;
    const expiresMs = now() + ms;
    this.#rememberAbsent(key, expiresMs);
    if (this.#entries.get(key)) return;
    const keepSeconds = removedAs > 0 ? KEEP_SECONDS : Math.ceil(ms / 1000);
    waitUntil(this.#store(key, { text: NOTHING, expiresMs, generation: removedAs }, keepSeconds));
  }

  #noteRemoved(key: string, generation: number): void {
    if (generation <= this.#newestSeen(key)) return;
    this.#removed.set(key, { bytes: 64 + 2 * key.length, generation });
    this.#entries.delete(key);
  }

  /** Of a removed object it names the generation. */
  #notFound(key: string): AgaroseError {
    const { generation } = this.#removed.get(key) ?? {};
    const message = `object ${JSON.stringify(key)} did not exist a moment ago: check the key with \`agarose ls\``;
    return new AgaroseError("OBJECT_NOT_FOUND", message, { key, ...(generation !== undefined && { generation }) });
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

/** Whether buckets gave no answer, as against one that we must not cover up. */
export function isUnreachable(error: unknown): boolean {
  const { code } = toAgaroseError(error);
  return code === "NO_SOURCE" || code === "SOURCE_FAILED" || code === "READ_TIMEOUT";
}

function cacheName(key: string): string {
  return `manifests/${encodeKey(key)}`;
}

/** The memory of an entry. */
function bytesOf({ inline, ...fields }: Manifest, tags: Entry["tags"]): number {
  return JSON.stringify(fields).length + (inline?.length ?? 0) + TAG_BYTES * (tags?.size ?? 0);
}
