/**
 * A bounded set of named byte arrays in one Cache: the least recently used go first, and where the browser has no room
 * left, half of them go and what would not fit is not kept. Nothing here fails: a storage that is full or forbidden is
 * an empty one.
 */
import { isCount } from "@agarose/core/format";

/** Names become URLs, which a Cache wants: nothing is ever fetched from there. */
const HOST = "https://offline.agarose.invalid/";

/** Named byte arrays of at most `bytesMax` bytes in all. The cache is opened at the first use. */
export class OfflineEntries {
  readonly #open: () => Promise<Cache>;
  /** Where the entries of this owner are. */
  readonly #base: string;
  /** The order of use, as JSON, newest last: [name, bytes] each. */
  readonly #index: string;
  readonly #bytesMax: number;
  /** Bytes by name, least recently used first. */
  readonly #sizes = new Map<string, number>();
  #bytes = 0;
  #ready: Promise<Cache | undefined> | undefined;
  /** Writes and deletions, one after the other, so that what was deleted stays so. */
  #last: Promise<unknown> = Promise.resolve();

  /** @param owner the path, with a slash at its end, of the entries in a cache that all apps of an origin share. */
  constructor(open: () => Promise<Cache>, bytesMax: number, owner = "") {
    this.#open = open;
    this.#bytesMax = bytesMax;
    this.#base = HOST + owner;
    this.#index = `${this.#base}index`;
  }

  /** Whether `name` was there when the entries were last used. */
  has(name: string): boolean {
    return this.#sizes.has(name);
  }

  async get(name: string): Promise<Uint8Array | undefined> {
    const cache = await this.#load();
    const bytes = this.#sizes.get(name);
    if (bytes === undefined) return undefined;
    try {
      const response = await cache!.match(this.#base + name);
      // The browser may clear storage at any time.
      if (!response) throw new Error("gone");
      const found = new Uint8Array(await response.arrayBuffer());
      if (this.#forget(name)) this.#note(name, found.length);
      return found;
    } catch {
      this.#forget(name);
      return undefined;
    }
  }

  /** Keeps `bytes`; what is larger than the bound is not kept. */
  put(name: string, bytes: Uint8Array): Promise<void> {
    return this.#inTurn(async (cache) => {
      if (bytes.length > this.#bytesMax) return;
      this.#forget(name);
      await this.#evict(cache, this.#bytesMax - bytes.length);
      const write = (): Promise<void> => cache.put(this.#base + name, new Response(bytes as Uint8Array<ArrayBuffer>));
      // QuotaExceededError: once half of it is gone there is room, or there is none for us.
      await write().catch(() => this.#evict(cache, this.#bytes / 2).then(write));
      this.#note(name, bytes.length);
      await this.#writeIndex(cache);
    });
  }

  deleteWhere(isDeleted: (name: string) => boolean): Promise<void> {
    return this.#inTurn(async (cache) => {
      const deleted = [...this.#sizes.keys()].filter(isDeleted);
      if (deleted.length === 0) return;
      await Promise.all(deleted.map((name) => this.#forget(name) && cache.delete(this.#base + name)));
      await this.#writeIndex(cache);
    });
  }

  #inTurn(work: (cache: Cache) => Promise<void>): Promise<void> {
    const done = this.#last.then(async () => {
      const cache = await this.#load();
      if (cache) await work(cache);
    });
    // Without a kept entry, the next read uses the network.
    this.#last = done.catch(() => {});
    return this.#last as Promise<void>;
  }

  /** The cache, once its entries are known; undefined where there is none. */
  #load(): Promise<Cache | undefined> {
    this.#ready ??= this.#readEntries().catch(() => undefined);
    return this.#ready;
  }

  async #readEntries(): Promise<Cache> {
    const cache = await this.#open();
    const [index, requests] = await Promise.all([cache.match(this.#index), cache.keys()]);
    const own = requests.filter(({ url }) => url.startsWith(this.#base));
    const there = new Set(own.map(({ url }) => url.slice(this.#base.length)));
    // A damaged index is an empty one.
    const ordered = (await index?.json().catch(() => {})) as unknown;
    for (const entry of Array.isArray(ordered) ? ordered : []) {
      const [name, bytes] = Array.isArray(entry) ? entry : [];
      if (isCount(bytes) && there.delete(name)) this.#note(name, bytes);
    }
    // Written by a worker that was ended before it could say so.
    const strays = [...there].filter((name) => this.#base + name !== this.#index);
    await Promise.all(strays.map((name) => cache.delete(this.#base + name)));
    return cache;
  }

  /** Deletes from the least recently used on, until no more than `bytes` are left. */
  async #evict(cache: Cache, bytes: number): Promise<void> {
    for (const name of this.#sizes.keys()) {
      if (this.#bytes <= bytes) return;
      this.#forget(name);
      await cache.delete(this.#base + name);
    }
  }

  async #writeIndex(cache: Cache): Promise<void> {
    await cache.put(this.#index, new Response(JSON.stringify([...this.#sizes])));
  }

  #note(name: string, bytes: number): void {
    this.#sizes.set(name, bytes);
    this.#bytes += bytes;
  }

  #forget(name: string): boolean {
    this.#bytes -= this.#sizes.get(name) ?? 0;
    return this.#sizes.delete(name);
  }
}
