/** Lookup tables of the JavaScript engine. */
import { multiply } from "./galois.ts";

/** Rows whose products share one 32-bit entry. */
export const ROWS_PER_TABLE = 4;

/** For each of k inputs, 256 entries: the products of a byte with that input's coefficient in up to four rows. */
export function productTables(matrix: Uint8Array, k: number, rows: number): Uint32Array[] {
  return Array.from({ length: k }, (_, j) => {
    const table = new Uint32Array(256);
    // Multiplication is linear: eight products give all 256.
    for (let first = 1; first < 256; first *= 2) {
      let packed = 0;
      for (let r = 0; r < rows; r++) packed |= multiply(matrix[r * k + j]!, first) << (8 * r);
      for (let low = 0; low < first; low++) table[first + low] = table[low]! ^ packed;
    }
    return table;
  });
}
