/**
 * GF(2^8) with the polynomial 0x11D and the matrices over it, in plain TypeScript.
 *
 * The code's generator is the Vandermonde matrix V (row r, column c: r^c) times the inverse of its top square, which makes
 * the first k rows the identity (Plank and Ding, "Note: Correction to the 1997 Tutorial on Reed-Solomon Coding", 2003).
 * Row r depends on k and r alone, so parities can be added without end, up to the 256 rows of the field.
 */

const POLYNOMIAL = 0x11d;
const LOG = new Uint8Array(256);
/** Twice the period, so that a sum of two logarithms needs no modulo. */
const EXP = new Uint8Array(510);

let element = 1;
for (let i = 0; i < 255; i++) {
  EXP[i] = EXP[i + 255] = element;
  LOG[element] = i;
  element <<= 1;
  if (element > 255) element ^= POLYNOMIAL;
}

/** The product of two field elements. */
export function multiply(a: number, b: number): number {
  return a === 0 || b === 0 ? 0 : EXP[LOG[a]! + LOG[b]!]!;
}

/** Row-major coefficients of the rows `wanted` over the rows `present` of the (present.length, any m) code. */
export function decodeMatrix(present: Uint8Array, wanted: Uint8Array): Uint8Array {
  const k = present.length;
  // Row w of the generator is v(w) * inverse(V top); over the present rows it is v(w) * inverse(V present): the top
  // square cancels out.
  return product(vandermonde(wanted, k), inverse(vandermonde(present, k), k), k);
}

/** Rows (r^0, r^1, … r^(k-1)); 0^0 is 1. */
function vandermonde(rows: Uint8Array, k: number): Uint8Array {
  const matrix = new Uint8Array(rows.length * k);
  rows.forEach((row, r) => {
    for (let c = 0, power = 1; c < k; c++, power = multiply(power, row)) matrix[r * k + c] = power;
  });
  return matrix;
}

function product(left: Uint8Array, right: Uint8Array, k: number): Uint8Array {
  const result = new Uint8Array(left.length);
  for (let row = 0; row < left.length; row += k) {
    for (let j = 0; j < k; j++) addRow(result, row, right, j * k, left[row + j]!, k);
  }
  return result;
}

/** Gauss-Jordan. The Vandermonde matrix of distinct elements is never singular, so a pivot is always found. */
function inverse(source: Uint8Array, k: number): Uint8Array {
  const matrix = source.slice();
  const result = new Uint8Array(k * k);
  for (let i = 0; i < k; i++) result[i * k + i] = 1;
  for (let column = 0; column < k; column++) {
    let pivot = column;
    while (matrix[pivot * k + column] === 0) pivot++;
    const scale = EXP[255 - LOG[matrix[pivot * k + column]!]!]!;
    for (const m of [matrix, result]) {
      swapRows(m, pivot * k, column * k, k);
      for (let c = 0; c < k; c++) m[column * k + c] = multiply(m[column * k + c]!, scale);
    }
    for (let row = 0; row < k; row++) {
      const factor = matrix[row * k + column]!;
      if (row === column || factor === 0) continue;
      addRow(matrix, row * k, matrix, column * k, factor, k);
      addRow(result, row * k, result, column * k, factor, k);
    }
  }
  return result;
}

function addRow(to: Uint8Array, toAt: number, from: Uint8Array, fromAt: number, factor: number, k: number): void {
  for (let c = 0; c < k; c++) to[toAt + c]! ^= multiply(factor, from[fromAt + c]!);
}

function swapRows(matrix: Uint8Array, a: number, b: number, k: number): void {
  if (a === b) return;
  const row = matrix.slice(a, a + k);
  matrix.copyWithin(a, b, b + k);
  matrix.set(row, b);
}
