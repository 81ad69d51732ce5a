/**
 * The parts of the codec, for programs that count bytes. Engines multiply matrices with shards without checks: the
 * caller is responsible for indices and lengths.
 * @module
 */
export type { Engine, KernelName, RowsDecoder, Shard } from "./codec.ts";
export { relaxedSimdSupported, withPlainSwizzle } from "./features.ts";
export { decodeMatrix, multiply } from "./galois.ts";
export { createJavascriptEngine } from "./javascript-engine.ts";
export { MatrixCache } from "./matrix-cache.ts";
export { createWasmEngine, wasmDecoder } from "./wasm-engine.ts";
