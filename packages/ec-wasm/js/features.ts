/** Which kernels this runtime can compile, found out by validating the smallest module that needs the feature. */

const HEADER = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
/** One type, () -> v128, and one function of it. */
const TYPE_AND_FUNCTION = [0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00];
const ZERO_VECTOR = [0x41, 0x00, 0xfd, 0x0f];
const SWIZZLE = [0xfd, 0x0e];
const RELAXED_SWIZZLE = [0xfd, 0x80, 0x02];
const END = 0x0b;

/** Whether `i8x16.swizzle` compiles here: any browser since 2021, Safari since 16.4. */
export function simdSupported(): boolean {
  return validates(SWIZZLE);
}

/** Whether `i8x16.relaxed_swizzle` compiles here. */
export function relaxedSimdSupported(): boolean {
  return validates(RELAXED_SWIZZLE);
}

function validates(instruction: number[]): boolean {
  if (typeof WebAssembly === "undefined") return false;
  const body = [0x00, ...ZERO_VECTOR, ...ZERO_VECTOR, ...instruction, END];
  const code = [0x0a, body.length + 2, 0x01, body.length, ...body];
  return WebAssembly.validate(Uint8Array.from([...HEADER, ...TYPE_AND_FUNCTION, ...code]));
}
