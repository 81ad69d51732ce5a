/**
 * The offline scheme of Liu et al. (section IV-B) on small instances, as an independent check of the exact knapsack:
 * Algorithm 1 enumerates how a cache of C chunks can be cut into pieces of 1..K chunks, Algorithm 2 gives the pieces of each
 * cut to the objects that value them most.
 *
 * Departure: the assignment of pieces to objects is found by the Hungarian method (Kuhn 1955; shortest augmenting paths)
 * instead of rising market-clearing prices. Both end in an assignment of largest value.
 */

/** Algorithm 1: calls `visit` with the pieces of every partition of `capacity` into parts of at most `k`, largest first. */
export function forEachPartition(capacity: number, k: number, visit: (pieces: readonly number[]) => void): void {
  const pieces: number[] = [];
  const extend = (left: number, largest: number): void => {
    if (left === 0) return visit(pieces);
    for (let piece = Math.min(largest, left); piece >= 1; piece--) {
      pieces.push(piece);
      extend(left - piece, piece);
      pieces.pop();
    }
  };
  extend(capacity, k);
}

/** |chi|, the number of those partitions, by the usual recurrence over part sizes. Exact while below 2^53. */
export function countPartitions(capacity: number, k: number): number {
  const ways = new Float64Array(capacity + 1);
  ways[0] = 1;
  for (let piece = 1; piece <= k; piece++) for (let c = piece; c <= capacity; c++) ways[c]! += ways[c - piece]!;
  return ways[capacity]!;
}

/**
 * The largest total value of caching; `value[object][d]` for d = 0..k. Pieces nobody gets stay empty, so that fewer objects than
 * pieces are no obstacle. Exponential in the capacity: for checks only.
 */
export function solveByPartitions(value: readonly (readonly number[])[], capacity: number): number {
  const k = (value[0]?.length ?? 1) - 1;
  let best = 0;
  forEachPartition(capacity, k, (pieces) => {
    const worth = pieces.map((piece) => value.map((own) => own[piece]!));
    best = Math.max(best, assign(worth));
  });
  return best;
}

/** Largest sum of worth[piece][object] with each piece and each object used at most once. */
function assign(worth: readonly (readonly number[])[]): number {
  const objects = worth[0]?.length ?? 0;
  // Idle columns let a piece go to nobody; costs are negative worths.
  const columns = objects + worth.length;
  const cost = (row: number, column: number): number => (column < objects ? -worth[row]![column]! : 0);
  const rowPrice = new Float64Array(worth.length + 1);
  const columnPrice = new Float64Array(columns + 1);
  const rowAt = new Int32Array(columns + 1);
  for (let row = 1; row <= worth.length; row++) augment(row, columns, cost, rowPrice, columnPrice, rowAt);
  let sum = 0;
  for (let column = 1; column <= columns; column++) if (rowAt[column]! > 0) sum -= cost(rowAt[column]! - 1, column - 1);
  return sum;
}

/** Finds the cheapest path that gives the row a column, moving others on (rows and columns count from 1). */
function augment(
  row: number,
  columns: number,
  cost: (row: number, column: number) => number,
  rowPrice: Float64Array,
  columnPrice: Float64Array,
  rowAt: Int32Array,
): void {
  const least = new Float64Array(columns + 1).fill(Infinity);
  const before = new Int32Array(columns + 1);
  const isDone = new Uint8Array(columns + 1);
  rowAt[0] = row;
  let column = 0;
  do {
    isDone[column] = 1;
    const from = rowAt[column]!;
    let step = Infinity;
    let next = 0;
    for (let c = 1; c <= columns; c++) {
      if (isDone[c]) continue;
      const reduced = cost(from - 1, c - 1) - rowPrice[from]! - columnPrice[c]!;
      if (reduced < least[c]!) {
        least[c] = reduced;
        before[c] = column;
      }
      if (least[c]! < step) {
        step = least[c]!;
        next = c;
      }
    }
    for (let c = 0; c <= columns; c++) {
      if (isDone[c]) {
        rowPrice[rowAt[c]!]! += step;
        columnPrice[c]! -= step;
      } else least[c]! -= step;
    }
    column = next;
  } while (rowAt[column] !== 0);
  for (; column > 0; column = before[column]!) rowAt[column] = rowAt[before[column]!]!;
}
