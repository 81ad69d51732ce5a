/**
 * The offline scheme of Liu et al. (section IV-B) on small instances, as an independent check of the exact knapsack.
 * Algorithm 1 enumerates how a cache of C chunks can be cut into pieces of 1..K chunks. Algorithm 2 sells the pieces'
 * places to the objects that value them most, at prices that rise until no two compete.
 *
 * Departures: in the paper a buyer takes all x_k objects of one size at once; here each piece bids for one (Bertsekas'
 * auction, 1988). A bid raises the price by what the piece would lose without the object, as line 10 does, plus less
 * than one unit, where line 10 adds a unit only if the piece would lose nothing. With integer values that increment
 * makes the assignment one of largest value.
 */

/**
 * Algorithm 1: calls `visit` with the pieces of every partition of `capacity` into parts of at most `k`, largest first.
 */
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

/**
 * Returns |chi|, the number of partitions with at most `piecesMax` pieces, by the usual recurrence; exact below 2^53.
 */
export function countPartitions(capacity: number, k: number, piecesMax = capacity): number {
  const most = Math.min(piecesMax, capacity);
  // ways[c x (most + 1) + p]: partitions of c into exactly p pieces.
  const ways = new Float64Array((capacity + 1) * (most + 1));
  ways[0] = 1;
  for (let piece = 1; piece <= k; piece++) {
    for (let c = piece; c <= capacity; c++) {
      for (let p = 1; p <= most; p++) ways[c * (most + 1) + p]! += ways[(c - piece) * (most + 1) + p - 1]!;
    }
  }
  return ways.subarray(capacity * (most + 1)).reduce((sum, count) => sum + count, 0);
}

/**
 * Returns the largest total value of caching. `value[object][d]` for d = 0..k are integers >= 0. Pieces
 * without a buyer stay empty, so there may be fewer objects than pieces. Exponential
 * in the capacity: for checks only.
 */
export function solveByPartitions(value: readonly (readonly number[])[], capacity: number): number {
  const k = (value[0]?.length ?? 0) - 1;
  if (k < 1) return 0;
  let best = 0;
  forEachPartition(capacity, k, (pieces) => {
    best = Math.max(best, clearMarket(pieces.map((piece) => value.map((own) => own[piece]!))).value);
  });
  return best;
}

interface Market {
  /** Sum of what the pieces got. */
  readonly value: number;
  /** Object of each piece, or -1. */
  readonly objectOf: Int32Array;
  /** Price of each object; 0 when no piece took it. */
  readonly price: Float64Array;
}

/**
 * Runs Algorithm 2 for one partition. `worth[piece][object]` are integers >= 0; each piece and each object is used at
 * most once.
 */
export function clearMarket(worth: readonly (readonly number[])[]): Market {
  const objects = worth[0]?.length ?? 0;
  const price = new Float64Array(objects);
  const pieceOf = new Int32Array(objects).fill(-1);
  const objectOf = new Int32Array(worth.length).fill(-1);
  const unit = 1 / (worth.length + 1);
  const bidding = [...worth.keys()];
  while (bidding.length > 0) {
    const piece = bidding.pop()!;
    let chosen = -1;
    let payoff = 0;
    let nextPayoff = 0;
    for (let object = 0; object < objects; object++) {
      const own = worth[piece]![object]! - price[object]!;
      if (own > payoff) {
        nextPayoff = payoff;
        payoff = own;
        chosen = object;
      } else if (own > nextPayoff) nextPayoff = own;
    }
    // No object is worth its price to this piece.
    if (chosen < 0) continue;
    price[chosen]! += payoff - nextPayoff + unit;
    if (pieceOf[chosen]! >= 0) {
      objectOf[pieceOf[chosen]!] = -1;
      bidding.push(pieceOf[chosen]!);
    }
    pieceOf[chosen] = piece;
    objectOf[piece] = chosen;
  }
  let value = 0;
  for (const [piece, object] of objectOf.entries()) if (object >= 0) value += worth[piece]![object]!;
  return { value, objectOf, price };
}
