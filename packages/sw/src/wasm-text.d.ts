/** WebAssembly as `build.ts` bundles it: a string with one character (0 to 255) per byte, masked. */
declare module "@agarose/ec-wasm/*.wasm" {
  const text: string;
  export default text;
}
