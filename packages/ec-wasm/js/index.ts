/**
 * Reed-Solomon encode, reconstruct and extra parity rows, on WebAssembly where the runtime allows it.
 *
 * - Node and Cloudflare Workers: `import { loadCodec } from "@agarose/ec-wasm"`, then `await loadCodec()`.
 * - Browser and service worker: bundle `@agarose/ec-wasm/relaxed.wasm` as bytes, then `await loadCodec(bytes)`; one
 *   file serves every browser with SIMD.
 * @module
 */
export type { Codec, KernelName, LoadedCodec, Shard } from "./codec.ts";
export { javascriptCodec } from "./javascript-engine.ts";
export { kernelSupported, loadCodec } from "./load.ts";
export type { CodecSource, CodecSources } from "./load.ts";
