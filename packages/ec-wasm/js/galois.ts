/**
 * GF(2^8) with the polynomial 0x11D and the matrices over it, in plain TypeScript.
 *
 * The code's generator is the Vandermonde matrix V (row r, column c: r^c) times the inverse of its top square, which
 * makes the first k rows the identity (Plank and Ding, "Note: Correction to the 1997 Tutorial on Reed-Solomon Coding",
 * 2003). Row r depends on k and r alone, so parities can be added without end, up to the 256 rows of the field.
 */

const POLYNOMIAL = 0x11d;
/** Zero has no logarithm: this one leads behind those of all products, where `EXP` is zero. */
const LOG_OF_ZERO = 510;
const LOG = new Uint16Array(256).fill(LOG_OF_ZERO);
/** Twice the period, so that a sum of two logarithms needs no modulo; then zeros. */
const EXP = new Uint8Array(2 * LOG_OF_ZERO + 1);

let element = 1;
for (let i = 0; i < 255; i++) {
  EXP[i] = EXP[i + 255] = element;
  LOG[element] = i;
  element <<= 1;
  if (element > 255) element ^= POLYNOMIAL;
}

/** The product of two field elements. */
export function multiply(a: number, b: number): number {
  return EXP[LOG[a]! + LOG[b]!]!;
}

/**
 * Row-major coefficients of the rows `wanted` over the rows `present` of the (present.length, any m) code.
 *
 * Data shard i is the value at i of a polynomial of degree below k, and so is every other row the value at its own
 * index: what the Vandermonde matrices multiply to is Lagrange's interpolation from the rows at hand. Subtraction is
 * XOR.
 */
export function decodeMatrix(
  present: Uint8Array | readonly number[],
  wanted: Uint8Array | readonly number[],
): Uint8Array {
  const k = present.length;
  const matrix = new Uint8Array(wanted.length * k);
  for (const [column, from] of present.entries()) {
    for (const [row, to] of wanted.entries()) {
      // The product of (to - other) / (from - other) over all other rows present.
      let product = 1;
      for (const other of present) {
        if (other !== from) product = multiply(multiply(product, to ^ other), EXP[255 - LOG[from ^ other]!]!);
      }
      matrix[row * k + column] = product;
    }
  }
  return matrix;
}
