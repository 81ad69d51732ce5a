/**
 * The codec of a Worker, which has no threads.
 */
import type { Codec } from "@agarose/core";
import { loadCodec } from "@agarose/ec-wasm";
import type { EncoderPool } from "@agarose/ec-wasm/encoder-pool";
import codecModule from "@agarose/ec-wasm/relaxed.wasm";

let loaded: Promise<Codec> | undefined;

/** The WASM codec, loaded on first use. */
export function codecOf(): Promise<Codec> {
  return (loaded ??= loadCodec(codecModule));
}

/** Encodes in place. */
export async function encoderOf(): Promise<Pick<EncoderPool, "encode">> {
  const codec = await codecOf();
  return {
    async encode(stripe, k, rows) {
      const shardBytes = stripe.length / k;
      const data = Array.from({ length: k }, (_, i) => stripe.subarray(i * shardBytes, (i + 1) * shardBytes));
      return { data, parity: codec.encode(data, rows) as Uint8Array<ArrayBuffer>[] };
    },
  };
}
