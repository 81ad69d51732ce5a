/** The codec also compiles bytes, where a runtime allows that; the types of workerd leave the function out. */
declare namespace WebAssembly {
  function compile(bytes: BufferSource): Promise<Module>;
}
