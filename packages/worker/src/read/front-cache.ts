/**
 * The Cache API of this data center as bytes by name. It is only a shortcut: every failure counts as a miss.
 *
 * Cloudflare wants the Worker's own hostname in the keys, and a Worker learns it from its requests only. A cache of
 * its own (`caches.open`) keeps what lies there apart from what the zone's cache would answer under these URLs.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "@agarose/core/async";

const DEADLINE_MS = 200;
/** An exchange waits for its puts, and a purge for its deletes. */
const CHANGE_DEADLINE_MS = 30_000;
const CACHE_NAME = "agarose";

const hosts = new WeakMap<object, string>();

/** Notes the host by which a Worker is asked. The first one decides, so that clients cannot split the cache. */
export function recordHost(env: object, host: string): void {
  if (!hosts.has(env)) hosts.set(env, host);
}

/** Returns the host that `recordHost` has noted first. */
export function hostOf(env: object): string | undefined {
  return hosts.get(env);
}

interface FrontCacheOwner {
  /** Separates several PoPs on one machine. */
  readonly pop: string;
  /** Returns the Worker's own host. Until that is known, nothing is cached. */
  readonly host: () => string | undefined;
}

/** The cache of one PoP. */
export class FrontCache {
  /** Whether this host of Workers has a Cache API. */
  static get isHere(): boolean {
    return typeof caches !== "undefined";
  }

  readonly #owner: FrontCacheOwner;
  readonly #clock: Clock;
  readonly #open: () => Cache | Promise<Cache>;

  /** @param open returns the cache; it is called for each use, because some hosts of Workers have none. */
  constructor(
    owner: FrontCacheOwner,
    clock: Clock,
    open: () => Cache | Promise<Cache> = () => caches.open(CACHE_NAME),
  ) {
    this.#owner = owner;
    this.#clock = clock;
    this.#open = open;
  }

  /** Resolves to the bytes of a name, or to undefined after 200 ms. Never rejects. */
  async get(name: string): Promise<Uint8Array | undefined> {
    const found = this.#with(name, async (cache, url) => {
      const response = await cache.match(url);
      return response ? new Uint8Array(await response.arrayBuffer()) : undefined;
    });
    return orUndefined(found, DEADLINE_MS, this.#clock);
  }

  /**
   * Stores bytes for `ttlSeconds`. Resolves after 30 s at most and never rejects: without this cache, a read falls back
   * to KV or the buckets.
   */
  async put(name: string, bytes: Uint8Array, ttlSeconds: number): Promise<void> {
    const headers = { "cache-control": `max-age=${ttlSeconds}`, "content-length": String(bytes.length) };
    const putting = this.#with(name, (cache, url) =>
      cache.put(url, new Response(bytes as Uint8Array<ArrayBuffer>, { headers })),
    );
    await orUndefined(putting, CHANGE_DEADLINE_MS, this.#clock);
  }

  /** Removes a name. Resolves after 30 s at most and never rejects: an entry expires by its own age. */
  async delete(name: string): Promise<void> {
    await orUndefined(
      this.#with(name, (cache, url) => cache.delete(url)),
      CHANGE_DEADLINE_MS,
      this.#clock,
    );
  }

  /** Cache keys are URLs. */
  async #with<T>(name: string, use: (cache: Cache, url: string) => Promise<T>): Promise<T | undefined> {
    const host = this.#owner.host();
    if (host === undefined) return undefined;
    return use(await this.#open(), `https://${host}/${encodeURIComponent(this.#owner.pop)}/${name}`);
  }
}
