/** Small functions on numbers that every read calls. */

/** How many bits are set. */
export function bitCount(mask: number): number {
  let count = 0;
  for (let bits = mask; bits !== 0; bits &= bits - 1) count++;
  return count;
}

/** The n-th smallest of the first `count` numbers; sorts them in place. */
export function nthSmallest(numbers: Float64Array, count: number, n: number): number {
  for (let i = 1; i < count; i++) {
    const number = numbers[i]!;
    let j = i;
    for (; j > 0 && numbers[j - 1]! > number; j--) numbers[j] = numbers[j - 1]!;
    numbers[j] = number;
  }
  return numbers[n - 1]!;
}
