/**
 * WebAssembly features of this runtime, and how the relaxed build adapts to a runtime without relaxed SIMD.
 *
 * A feature is available if the smallest module that needs it validates.
 */

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

// The relaxed and the plain SIMD build differ in one instruction. `i8x16.relaxed_swizzle` is FD 80 02 and
// `i8x16.swizzle` is FD 0E. LEB128 numbers may be padded, so FD 8E 00 is the plain instruction in three bytes
// (WebAssembly core specification, 5.2.2 and 5.4.8). The build script checks that these bytes have no other meaning in
// the file.
const RELAXED_BYTES = "253,128,2,";
const PLAIN_BYTES = "253,142,0,";

/** A copy of `module` with plain swizzles, for runtimes without relaxed SIMD: a page ships one file instead of two. */
export function withPlainSwizzle(module: Uint8Array): Uint8Array<ArrayBuffer> {
  // As text: a typed array cannot search for a sequence of bytes.
  return Uint8Array.from(module.join().replaceAll(RELAXED_BYTES, PLAIN_BYTES).split(","), Number);
}
