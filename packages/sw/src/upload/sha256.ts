/** SHA-256 part by part (FIPS 180-4): Web Crypto takes nothing but the whole. */

const BLOCK_BYTES = 64;
/** Of the first primes: 32 bits of the fractional parts of their square and cube roots. */
const PRIMES = primes(64);
const INITIAL = PRIMES.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)));
const ROUNDS = Int32Array.from(PRIMES, (prime) => fraction(Math.cbrt(prime)));

/** A hash under way. */
export class Sha256Parts {
  readonly #state = Int32Array.from(INITIAL);
  readonly #words = new Int32Array(BLOCK_BYTES);
  readonly #rest = new Uint8Array(BLOCK_BYTES);
  #bytes = 0;

  /** Adds the next part. */
  update(part: Uint8Array): void {
    let at = 0;
    const used = this.#bytes % BLOCK_BYTES;
    this.#bytes += part.length;
    if (used > 0) {
      at = Math.min(BLOCK_BYTES - used, part.length);
      this.#rest.set(part.subarray(0, at), used);
      if (used + at < BLOCK_BYTES) return;
      this.#block(this.#rest, 0);
    }
    for (; at + BLOCK_BYTES <= part.length; at += BLOCK_BYTES) this.#block(part, at);
    this.#rest.set(part.subarray(at));
  }

  /** The hash in lower-case hex, after which no bytes can be added. */
  hex(): string {
    const bytes = this.#bytes;
    const padding = new Uint8Array(BLOCK_BYTES - ((bytes + 8) % BLOCK_BYTES) + 8);
    padding[0] = 0x80;
    const length = new DataView(padding.buffer, padding.length - 8);
    length.setUint32(0, Math.floor(bytes / 2 ** 29));
    length.setUint32(4, (bytes * 8) % 2 ** 32);
    this.update(padding);
    return [...this.#state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #block(bytes: Uint8Array, from: number): void {
    const words = this.#words;
    for (let i = 0; i < 16; i++) {
      const at = from + i * 4;
      words[i] = (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
    }
    for (let i = 16; i < 64; i++) {
      const x = words[i - 15]!;
      const y = words[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      words[i] = (words[i - 16]! + s0 + words[i - 7]! + s1) | 0;
    }
    const state = this.#state;
    let [a, b, c, d] = [state[0]!, state[1]!, state[2]!, state[3]!];
    let [e, f, g, h] = [state[4]!, state[5]!, state[6]!, state[7]!];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i]! + words[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    for (const [i, value] of [a, b, c, d, e, f, g, h].entries()) state[i]! += value;
  }
}

function primes(count: number): number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime > 0)) found.push(n);
  return found;
}

function fraction(root: number): number {
  return ((root % 1) * 2 ** 32) | 0;
}
