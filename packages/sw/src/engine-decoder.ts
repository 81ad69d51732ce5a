/**
 * A decoder without the checks of `loadCodec`, for the reader alone: what reaches it has passed a SHA-256 under the index and
 * length of a checked manifest, and there are k of it.
 */
import type { Decoder } from "@agarose/core";
import { MatrixCache, type Engine, type KernelName } from "@agarose/ec-wasm/engine";

/** @param engine multiplies; the shards wanted of it must not be among those given. */
export function engineDecoder(engine: Engine): Decoder & { readonly kernel: KernelName } {
  const cache = new MatrixCache((present, wanted) => engine.matrix(present, wanted));
  return {
    kernel: engine.kernel,
    reconstruct(k, shards, wanted) {
      // Lowest indices first: a data shard in the input makes the matrix no denser and needs no inversion.
      const used = shards.toSorted((a, b) => a.index - b.index).slice(0, k);
      const inputs = used.map(({ bytes }) => bytes);
      const outputs = wanted.map(() => new Uint8Array(inputs[0]!.length));
      const present = used.map(({ index }) => index);
      engine.apply(cache.get(present, wanted), inputs, outputs);
      return outputs;
    },
  };
}
