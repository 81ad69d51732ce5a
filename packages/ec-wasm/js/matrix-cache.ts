/**
 * Matrices by (present rows, wanted rows): late binding makes nearly every read another pattern, but an object of many
 * stripes, or a region that is down, repeats the same few.
 */

/** Bounds all cached matrices together; a (9,3) pattern takes 27 bytes, the largest of all 64 KiB. */
const CACHE_BYTES_MAX = 256 * 1024;
/** The bytes of an entry beyond its coefficients: key, Map slot, typed array. */
const ENTRY_BYTES = 256;

/** A cache of decoding matrices by rows, bounded in bytes. The least recently used leaves first. */
export class MatrixCache {
  readonly #entries = new Map<string, Uint8Array>();
  readonly #compute: (present: Uint8Array, wanted: Uint8Array) => Uint8Array;
  #bytes = 0;

  constructor(compute: (present: Uint8Array, wanted: Uint8Array) => Uint8Array) {
    this.#compute = compute;
  }

  /** The matrix for `wanted` over `present`: the same array object each time while it is cached. */
  get(present: readonly number[], wanted: readonly number[]): Uint8Array {
    const key = String.fromCharCode(present.length, ...present, ...wanted);
    let matrix = this.#entries.get(key);
    if (matrix !== undefined) {
      // Re-inserting keeps the Map in order of last use.
      this.#entries.delete(key);
      this.#entries.set(key, matrix);
      return matrix;
    }
    matrix = this.#compute(Uint8Array.from(present), Uint8Array.from(wanted));
    this.#entries.set(key, matrix);
    this.#bytes += matrix.length + ENTRY_BYTES;
    this.#evict();
    return matrix;
  }

  #evict(): void {
    for (const [key, matrix] of this.#entries) {
      if (this.#bytes <= CACHE_BYTES_MAX) return;
      this.#entries.delete(key);
      this.#bytes -= matrix.length + ENTRY_BYTES;
    }
  }
}
