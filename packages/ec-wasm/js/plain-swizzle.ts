/**
 * The relaxed build for runtimes without relaxed SIMD: a page ships one file instead of two.
 *
 * The builds differ in one instruction. `i8x16.relaxed_swizzle` is FD 80 02, `i8x16.swizzle` is FD 0E, and LEB128 numbers may
 * be padded, so FD 8E 00 is the same in as many bytes (WebAssembly core specification, 5.2.2 and 5.4.8). The build script
 * checks that these bytes mean nothing else anywhere in the file; the contract suite runs over the result.
 */
const RELAXED = [0xfd, 0x80, 0x02] as const;
const PLAIN = [0xfd, 0x8e, 0x00] as const;

/** A copy of the module with plain swizzles; equal bytes when it has no relaxed ones. */
export function withPlainSwizzle(module: Uint8Array): Uint8Array {
  const plain = module.slice();
  for (let at = plain.indexOf(RELAXED[0]); at >= 0; at = plain.indexOf(RELAXED[0], at + 1)) {
    if (plain[at + 1] === RELAXED[1] && plain[at + 2] === RELAXED[2]) plain.set(PLAIN, at);
  }
  return plain;
}
