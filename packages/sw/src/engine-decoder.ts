/**
 * A decoder without the checks of `loadCodec`, for the reader alone: what reaches it has passed a SHA-256 under the index and
 * length of a checked manifest, and there are k of it.
 */
import type { Decoder } from "@agarose/core";
import { decodeMatrix, type Engine } from "@agarose/ec-wasm/engine";

/** @param apply multiplies; the shards wanted of it must not be among those given. */
export function engineDecoder(apply: Engine["apply"]): Decoder {
  return {
    reconstruct(_k, shards, wanted) {
      const inputs = shards.map(({ bytes }) => bytes);
      const outputs = wanted.map(() => new Uint8Array(inputs[0]!.length));
      const present = shards.map(({ index }) => index);
      // Computed anew for every stripe: for (9,3) that is a few hundred steps, and a cache would be more code than this.
      apply(decodeMatrix(present, wanted), inputs, outputs);
      return outputs;
    },
  };
}
