/** What each byte of the inlined WebAssembly is XORed with: of all masks, the file is smallest with this one. */
export const WASM_MASK = 0x3c;
