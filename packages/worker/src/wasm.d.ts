/** A WebAssembly file is imported as a compiled module: workerd compiles nothing at run time. */
declare module "*.wasm" {
  const module: WebAssembly.Module;
  export default module;
}

/** The codec also compiles bytes, where a runtime allows that; the types of workerd leave the function out. */
declare namespace WebAssembly {
  function compile(bytes: BufferSource): Promise<Module>;
}
