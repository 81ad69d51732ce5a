/**
 * The parts of the codec one by one, for programs that count bytes: engines multiply matrices with shards and check
 * nothing, so whoever calls them answers for indices and lengths.
 * @module
 */
export type { Engine, KernelName, RowsDecoder, Shard } from "./codec.ts";
export { relaxedSimdSupported } from "./features.ts";
export { decodeMatrix, multiply } from "./galois.ts";
export { createJavascriptEngine } from "./javascript-engine.ts";
export { MatrixCache } from "./matrix-cache.ts";
export { withPlainSwizzle } from "./plain-swizzle.ts";
export { createWasmEngine, wasmDecoder } from "./wasm-engine.ts";
