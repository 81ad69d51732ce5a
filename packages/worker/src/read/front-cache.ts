/**
 * The Cache API of this data center, as bytes under a name. It is a shortcut only: whatever goes wrong is a miss.
 */
import type { Clock } from "@agarose/core";
import { orUndefined } from "../platform/async.ts";

const DEADLINE_MS = 200;

export class FrontCache {
  readonly #pop: string;
  readonly #clock: Clock;
  readonly #open: () => Cache;

  /** @param open returns the cache; called per use, because some hosts of Workers have none. */
  constructor(pop: string, clock: Clock, open: () => Cache = () => caches.default) {
    this.#pop = pop;
    this.#clock = clock;
    this.#open = open;
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const found = async (): Promise<Uint8Array | undefined> => {
      const response = await this.#open().match(this.#url(name));
      return response ? new Uint8Array(await response.arrayBuffer()) : undefined;
    };
    return orUndefined(found(), DEADLINE_MS, this.#clock);
  }

  async put(name: string, bytes: Uint8Array, ttlSeconds: number): Promise<void> {
    const headers = { "cache-control": `max-age=${ttlSeconds}`, "content-length": String(bytes.length) };
    try {
      await this.#open().put(this.#url(name), new Response(bytes as Uint8Array<ArrayBuffer>, { headers }));
    } catch {
      // A cache that takes nothing costs a read of what stands behind it.
    }
  }

  async delete(name: string): Promise<void> {
    try {
      await this.#open().delete(this.#url(name));
    } catch {
      // The entry goes by its own age.
    }
  }

  /** Cache keys are URLs; the name of the PoP keeps several PoPs on one machine apart. */
  #url(name: string): string {
    return `https://agarose.invalid/${encodeURIComponent(this.#pop)}/${name}`;
  }
}
