/** WebAssembly as `build.ts` bundles it: a string with one character (0 to 255) per byte. */
declare module "@agarose/ec-wasm/*.wasm" {
  const text: string;
  export default text;
}
