/**
 * The relaxed build for runtimes without relaxed SIMD: a page ships one file instead of two.
 *
 * The builds differ in one instruction. `i8x16.relaxed_swizzle` is FD 80 02, `i8x16.swizzle` is FD 0E, and LEB128 numbers may
 * be padded, so FD 8E 00 is the same in as many bytes (WebAssembly core specification, 5.2.2 and 5.4.8). The build script
 * checks that these bytes mean nothing else anywhere in the file; the contract suite runs over the result.
 */
const RELAXED = "253,128,2,";
const PLAIN = "253,142,0,";

/** A copy of the module with plain swizzles; equal bytes when it has no relaxed ones. */
export function withPlainSwizzle(module: Uint8Array): Uint8Array<ArrayBuffer> {
  // As text, because typed arrays cannot look for more than one byte.
  return Uint8Array.from(module.join().replaceAll(RELAXED, PLAIN).split(","), Number);
}
