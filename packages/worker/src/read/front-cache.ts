/** The Cache API of this data center as bytes by name. It is only a shortcut: every failure counts as a miss. */
import type { Clock } from "@agarose/core";
import { orUndefined } from "../platform/async.ts";

const DEADLINE_MS = 200;

/** The cache of one PoP. */
export class FrontCache {
  readonly #pop: string;
  readonly #clock: Clock;
  readonly #open: () => Cache;

  /** @param open returns the cache; it is called for each use, because some hosts of Workers have none. */
  constructor(pop: string, clock: Clock, open: () => Cache = () => caches.default) {
    this.#pop = pop;
    this.#clock = clock;
    this.#open = open;
  }

  /** Resolves to the bytes of a name, or to undefined after 200 ms. Never rejects. */
  async get(name: string): Promise<Uint8Array | undefined> {
    const found = async (): Promise<Uint8Array | undefined> => {
      const response = await this.#open().match(this.#url(name));
      return response ? new Uint8Array(await response.arrayBuffer()) : undefined;
    };
    return orUndefined(found(), DEADLINE_MS, this.#clock);
  }

  /** Stores bytes for `ttlSeconds`. Never rejects. */
  async put(name: string, bytes: Uint8Array, ttlSeconds: number): Promise<void> {
    const headers = { "cache-control": `max-age=${ttlSeconds}`, "content-length": String(bytes.length) };
    try {
      await this.#open().put(this.#url(name), new Response(bytes as Uint8Array<ArrayBuffer>, { headers }));
    } catch {
      // Without this cache, a read falls back to KV or the buckets.
    }
  }

  /** Removes a name. Never rejects. */
  async delete(name: string): Promise<void> {
    try {
      await this.#open().delete(this.#url(name));
    } catch {
      // The entry expires by its own age.
    }
  }

  /** Cache keys are URLs. The name of the PoP separates several PoPs on one machine. */
  #url(name: string): string {
    return `https://agarose.invalid/${encodeURIComponent(this.#pop)}/${name}`;
  }
}
