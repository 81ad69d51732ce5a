/** Lookup tables of the JavaScript engine. */
import { multiply } from "./galois.ts";

/** Rows whose products share one 32-bit entry. */
export const ROWS_PER_TABLE = 4;
/** Entries per input: one for each value of a byte. */
export const TABLE_ENTRIES = 256;

/** For each of k inputs, 256 entries: the products of a byte with that input's coefficient in up to four rows. */
export function fillProductTables(tables: Int32Array, matrix: Uint8Array, k: number, rows: number): void {
  for (let j = 0; j < k; j++) {
    const table = j * TABLE_ENTRIES;
    // Multiplication is linear: eight products give all 256.
    for (let first = 1; first < TABLE_ENTRIES; first *= 2) {
      let packed = 0;
      for (let r = 0; r < rows; r++) packed |= multiply(matrix[r * k + j]!, first) << (8 * r);
      for (let low = 0; low < first; low++) tables[table + first + low] = tables[table + low]! ^ packed;
    }
  }
}
