/** The same face for Cloudflare Workers, whose bundlers make the import of a build a compiled module. */
import relaxed from "../pkg/relaxed.wasm";
import { loadCodec as loadCodecFrom, type CodecSource, type CodecSources } from "./load.ts";
import type { LoadedCodec } from "./codec.ts";

export type { Codec, KernelName, LoadedCodec, Shard } from "./codec.ts";
export { javascriptCodec } from "./javascript-engine.ts";
export { kernelSupported } from "./load.ts";
export type { CodecSource, CodecSources } from "./load.ts";

let own: Promise<LoadedCodec> | undefined;

/** Like `loadCodec` of the isomorphic entry; without a source, the build that comes with the Worker. */
export function loadCodec(source?: CodecSource | CodecSources): Promise<LoadedCodec> {
  return source === undefined ? (own ??= loadCodecFrom(relaxed)) : loadCodecFrom(source);
}
