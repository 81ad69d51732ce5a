/**
 * Each byte of the inlined WebAssembly is written as the character of this number less the byte, modulo 256: of all
 * numbers, the file is smallest with this one.
 */
export const WASM_MASK = 122;
