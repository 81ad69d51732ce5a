/** A WebAssembly file as its bundler gives it: bytes in the benches, a compiled module in Workers. */
declare module "*.wasm" {
  const contents: BufferSource & WebAssembly.Module;
  export default contents;
}
