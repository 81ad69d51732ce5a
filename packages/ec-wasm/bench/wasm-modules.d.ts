/** Bytes in the service worker (esbuild's binary loader), a compiled module in workerd. */
declare module "*.wasm" {
  const contents: Uint8Array<ArrayBuffer>;
  export default contents;
}
