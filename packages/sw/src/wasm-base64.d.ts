/** As `build.ts` bundles them: base64 of the file in zlib format. */
declare module "@agarose/ec-wasm/*.wasm" {
  const base64: string;
  export default base64;
}
