/** The same face for Node, where `loadCodec()` finds the committed builds by itself. */
import { readFile } from "node:fs/promises";

import { kernelSupported, loadCodec as loadCodecFrom, type CodecSource, type CodecSources } from "./load.ts";
import type { LoadedCodec } from "./codec.ts";

export type { Codec, KernelName, LoadedCodec, Shard } from "./codec.ts";
export { javascriptCodec } from "./javascript-engine.ts";
export { kernelSupported } from "./load.ts";
export type { CodecSource, CodecSources } from "./load.ts";

/** Names of the committed builds, fastest first. */
export const BUILDS = ["relaxed", "simd", "scalar"] as const;

let fastest: Promise<LoadedCodec> | undefined;

/** Like `loadCodec` of the isomorphic entry; without a source, the fastest committed build that this Node supports. */
export function loadCodec(source?: CodecSource | CodecSources): Promise<LoadedCodec> {
  if (source !== undefined) return loadCodecFrom(source);
  fastest ??= readBuild(BUILDS.find(kernelSupported) ?? "scalar").then(loadCodecFrom);
  return fastest;
}

/** The bytes of one committed build. */
export async function readBuild(name: (typeof BUILDS)[number]): Promise<Uint8Array<ArrayBuffer>> {
  return Uint8Array.from(await readFile(new URL(`../pkg/${name}.wasm`, import.meta.url)));
}
