/** Typed arrays that grow. */

type Numbers = Float64Array | Float32Array | Int32Array | Int16Array;

/** Returns an array of `length` numbers that begins with those of `numbers`. */
export function grown<T extends Numbers>(numbers: T, length: number): T {
  const longer = new (numbers.constructor as new (length: number) => T)(length);
  longer.set(numbers);
  return longer;
}
