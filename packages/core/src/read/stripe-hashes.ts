/** The shard hashes of stripes: from the manifest, or from pages of the leaf list, each of which many stripes share. */
import { HASH_BYTES } from "../format/hash-tree.ts";
import { pageShape, type Manifest, type StripeShape } from "../format/manifest/index.ts";
import { fromBase64 } from "../format/text.ts";

/** Reads of adjacent stripes need so many. */
const PAGES_KEPT = 2;

/** Reads and verifies the part `shape` of the leaf list, which is page `page`. Rejects where no source has it. */
export type ReadPage = (page: number, shape: StripeShape, signal: AbortSignal) => Promise<Uint8Array>;

/** The hashes of one object. It keeps two pages. */
export class StripeHashes {
  readonly #manifest: Manifest;
  readonly #read: ReadPage;
  readonly #pages = new Map<number, Promise<Uint8Array>>();

  constructor(manifest: Manifest, read: ReadPage) {
    this.#manifest = manifest;
    this.#read = read;
  }

  /** Resolves to the n hashes of a stripe, one after the other. Rejects as `ReadPage` does. */
  async of(stripe: number, signal: AbortSignal): Promise<Uint8Array> {
    const { hashes, pageStripes, k, m } = this.#manifest;
    if (!pageStripes) return fromBase64(hashes[stripe]!);
    const page = Math.floor(stripe / pageStripes);
    const bytes = (k + m) * HASH_BYTES;
    const at = (stripe % pageStripes) * bytes;
    for (;;) {
      const known = this.#pages.get(page);
      try {
        return (await (known ?? this.#begin(page, pageStripes, signal))).subarray(at, at + bytes);
      } catch (error) {
        // The stripe that asked for it may have been given up, and this one was not.
        if (!known || signal.aborted) throw error;
      }
    }
  }

  #begin(page: number, pageStripes: number, signal: AbortSignal): Promise<Uint8Array> {
    const read = this.#read(page, pageShape({ ...this.#manifest, pageStripes }, page), signal);
    const [oldest] = this.#pages.size < PAGES_KEPT ? [] : this.#pages.keys();
    if (oldest !== undefined) this.#pages.delete(oldest);
    this.#pages.set(page, read);
    read.catch(() => {
      if (this.#pages.get(page) === read) this.#pages.delete(page);
    });
    return read;
  }
}
